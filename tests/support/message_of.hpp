// The message of an exception that a test expects.
#pragma once

#include <string>

#include <doctest/doctest.h>

namespace jitsmith::test {

// Any other exception fails the case by leaving it.
template <class Expected, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  }
  FAIL_CHECK("nothing was thrown");
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace jitsmith::test
