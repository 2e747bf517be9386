#include <jitsmith/tools/progress.hpp>

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include <jitsmith/tools/output.hpp>

namespace jitsmith {

void Progress::done(std::string_view outcome, std::string_view item) {
  ++done_, ++worked_;
  if (form_ == Form::lines) print(fmt::format("[{}/{}] {:<8} {}\n", done_, total_, outcome, item));
  if (form_ != Form::bar) return;
  const Clock::time_point now = Clock::now();
  if (now - shown_ < std::chrono::milliseconds(100)) return;
  shown_ = now;
  print(fmt::format("\r\x1b[K{}", bar(now)));
  std::fflush(stdout);
}

void Progress::end() const {
  if (form_ == Form::bar && done_ > 0) print("\r\x1b[K");
}

// [============            ] 31/62  14.2/s  0:02 left   (under 80 columns: a longer line would wrap)
std::string Progress::bar(Clock::time_point now) const {
  constexpr std::size_t k_width = 24;
  const std::size_t filled = k_width * done_ / total_;
  std::string text = fmt::format("[{:<{}}] {}/{}", std::string(filled, '='), k_width, done_, total_);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(worked_) / seconds;
  if (!std::isfinite(rate)) return text;
  text += fmt::format("  {:.1f}/s", rate);
  const double left = static_cast<double>(total_ - done_) / rate;
  if (left < 100 * 3600)
    text += fmt::format("  {}:{:02} left", static_cast<int>(left) / 60, static_cast<int>(left) % 60);
  return text;
}

}  // namespace jitsmith
