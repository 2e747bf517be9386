#include <cstdio>

#include <jitsmith/cache/event.hpp>

int main() {
  const jitsmith::Event event{.what = "consumer", .text = "added the source tree"};
  std::puts(event.text.c_str());
}
