#include <cstdio>

#include "calculator.h"

int main() {
  const bool works = sum_of("1 + 2 - 30") == -27 && sum_of("7") == 7 && sum_of("") == 0;
  std::puts(works ? "all is well" : "it cannot count");
  return works ? 0 : 1;
}
