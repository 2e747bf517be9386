#include <cstdio>

#include <jitsmith/cache/event.hpp>
#include <jitsmith/jit/embedded_templates.hpp>
#include <jitsmith/jit/params.hpp>

int main() {
  const jitsmith::Event event{.what = "consumer", .text = "found the installed library"};
  std::printf("%s: %zu templates\n", event.text.c_str(), jitsmith::embedded_templates().size());
  return jitsmith::embedded_templates().empty() ? 1 : 0;
}
