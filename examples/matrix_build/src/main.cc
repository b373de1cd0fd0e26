#include <cstdio>

#include "calculator.h"

int main(int count, char** words) {
  if (count != 2) return std::fputs("usage: calculator '1 + 2'\n", stderr), 64;
  std::printf("%ld\n", sum_of(words[1]));
}
