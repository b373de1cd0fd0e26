#include "calculator.h"

long sum_of(std::string_view text) {
  long sum = 0, number = 0, sign = 1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') number = number * 10 + (c - '0');
    if (c != '+' && c != '-') continue;
    sum += sign * number;
    number = 0;
    sign = c == '+' ? 1 : -1;
  }
  return sum + sign * number;
}
