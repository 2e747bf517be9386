#include <jitsmith/runtime/recorder.hpp>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include <jitsmith/cache/whole_file.hpp>
#include <jitsmith/jit/lines.hpp>
#include <jitsmith/runtime/recording.hpp>

namespace jitsmith {
namespace {

constexpr std::string_view k_elsewhere = "name another file by JITSMITH_RECORD";

std::string trouble_of(int error) {
  return fmt::format("{}; {}", message_of_errno(error), remedy_of_errno(error, k_elsewhere));
}

}  // namespace

void Recorder::record(const std::string& op, const std::string& arch, const std::string& variant,
                      const Params& params, const Params* request) noexcept try {
  if (path_.empty()) return;
  KernelRecord record{
      .op = op, .arch = arch, .variant = variant, .params = texts_of(params), .request = std::nullopt};
  // With the request: two that need one kernel here may need two elsewhere.
  if (request != nullptr) record.request = texts_of(*request);
  const std::string trouble = record_line(to_json(record));
  // Without the lock: a sink may come back to the engine.
  if (trouble.empty()) return;
  if (events_)
    events_({EventLevel::warning, "record.failed",
             fmt::format("recording to {} failed and is off for this engine: {}", path_, trouble)});
} catch (...) {
  // No memory, or a sink that throws: a plan is worth more than its record.
}

// Why recording is off from now on, or "".
std::string Recorder::record_line(const std::string& line) {
  const std::scoped_lock lock(mutex_);
  if (failed_) return {};
  std::string trouble = file_.is_open() ? std::string() : open();
  // By digest, which is only an address: two records that share one are too rare to matter here.
  if (trouble.empty() && !known_.insert(digest_of(line)).second) return {};
  if (trouble.empty()) trouble = append(line + '\n');
  if (!trouble.empty()) {
    failed_ = true;
    file_ = {};
  }
  return trouble;
}

std::string Recorder::open() {
  // Opening or writing a FIFO must not wait for its reader.
  file_ = {file_system_,
           file_system_.open_at(AT_FDCWD, path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0666)};
  if (!file_.is_open()) return trouble_of(file_.error());
  struct ::stat stat {};
  if (const int result = file_system_.stat(file_.get(), stat); result < 0) return trouble_of(-result);
  if (!S_ISREG(stat.st_mode)) return fmt::format("it is no regular file; {}", k_elsewhere);

  // Lines of another form are nobody's records, and do no harm here.
  std::string held(std::min(static_cast<std::size_t>(stat.st_size), k_max_recording_bytes), '\0');
  const ssize_t got = file_system_.read_full_at(file_.get(), std::as_writable_bytes(std::span(held)), 0);
  if (got < 0) return trouble_of(static_cast<int>(-got));
  held.resize(static_cast<std::size_t>(got));
  for (const std::string_view line : lines_of(held)) known_.insert(digest_of(line));
  return {};
}

std::string Recorder::append(const std::string& line) {
  struct ::stat stat {};
  if (const int result = file_system_.stat(file_.get(), stat); result < 0) return trouble_of(-result);

  // A full disk or a kill can have left half a line, of any process and at any time. A newline ends it, and
  // costs no more than a blank line where another process is quicker.
  const auto size_bytes = static_cast<std::uint64_t>(stat.st_size);
  std::byte last{'\n'};
  if (size_bytes > 0)
    if (const ssize_t got = file_system_.read_full_at(file_.get(), {&last, 1}, size_bytes - 1); got < 0)
      return trouble_of(static_cast<int>(-got));
  const std::string text = (last == std::byte{'\n'} ? "" : "\n") + line;
  if (size_bytes + text.size() > k_max_recording_bytes)
    return fmt::format("it would have more than {} MiB, which is the most that is read; {}",
                       k_max_recording_bytes >> 20, k_elsewhere);
  if (size_bytes + text.size() > file_system_.file_size_limit())  // the write would raise SIGXFSZ
    return trouble_of(EFBIG);
  const int result = file_system_.write_full(file_.get(), std::as_bytes(std::span(text)));
  return result < 0 ? trouble_of(-result) : std::string();
}

}  // namespace jitsmith
