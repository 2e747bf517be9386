// Progress: how far a long command is. On a terminal one line, written over at most ten times a second;
// anywhere else a line for each item.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace jitsmith {

class Progress {
 public:
  enum class Form { lines, bar, none };

  Progress(std::size_t total, Form form) : total_(total), form_(form) {}

  // The rate and the time left are those of what is done after this.
  void work_begins() { begin_ = Clock::now(), worked_ = 0; }

  void done(std::string_view outcome, std::string_view item);
  void end() const;  // leaves no bar behind

 private:
  using Clock = std::chrono::steady_clock;

  std::string bar(Clock::time_point now) const;

  const std::size_t total_;
  const Form form_;
  std::size_t done_ = 0, worked_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point shown_{};
};

}  // namespace jitsmith
