#include <jitsmith/tools/output.hpp>

#include <array>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <jitsmith/tools/command.hpp>

namespace jitsmith {

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  // open() gives the lowest free descriptor. Opened for the wrong direction, it still fails where it was
  // closed.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0)
      ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void complain(std::string_view sentence) {
  const std::string line = fmt::format("jitsmith: {}\n", sentence);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

int finish_output(int status) {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return status;
  complain("standard output could not be written to the end");
  return status == k_success ? k_failure : status;
}

std::string size_text(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double size = static_cast<double>(bytes) / 1024;
  constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < units.size(); ++unit) size /= 1024;
  return fmt::format("{:.1f} {}", size, units[unit]);
}

}  // namespace jitsmith
