// The real file system with faults: fails chosen calls, transfers in small pieces, and runs a hook before a
// call. Counts every call. For one thread at a time.
#pragma once

#include <jitsmith/cache/file_system.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace jitsmith::test {

enum class Call {
  any,
  open,
  read,
  write,
  sync,
  close,
  rename,
  unlink,
  make_directory,
  change_mode,
  stat,
  stat_at,
  check_writable,
  touch,
  list,
  lock,
};

class FaultyFileSystem final : public FileSystem {
 public:
  // Fails the nth call of this kind from now on (1: the next), and the `times - 1` after it, with `error`.
  void fail(Call kind, int nth, int error, int times = 1) { faults_.push_back({kind, nth, times, error}); }
  // Runs once, before the next call of this kind.
  void before_next(Call kind, std::function<void()> hook) { hooks_.push_back({kind, std::move(hook)}); }
  void transfer_at_most(std::size_t bytes) { max_transfer_ = bytes; }
  void limit_file_size(std::uint64_t bytes) { size_limit_ = bytes; }
  void forget() {
    faults_.clear();
    calls_.clear();
  }

  const std::vector<Call>& calls() const { return calls_; }
  int count(Call kind) const { return static_cast<int>(std::count(calls_.begin(), calls_.end(), kind)); }

  int rename_at(int directory, const char* from, const char* to) override {
    const int error = enter(Call::rename);
    return error != 0 ? error : real_.rename_at(directory, from, to);
  }
  int unlink_at(int directory, const char* name) override {
    const int error = enter(Call::unlink);
    return error != 0 ? error : real_.unlink_at(directory, name);
  }
  int make_directory_at(int directory, const char* name, mode_t mode) override {
    const int error = enter(Call::make_directory);
    return error != 0 ? error : real_.make_directory_at(directory, name, mode);
  }
  int change_mode(int file, mode_t mode) override {
    const int error = enter(Call::change_mode);
    return error != 0 ? error : real_.change_mode(file, mode);
  }
  int stat(int file, struct ::stat& out) override {
    const int error = enter(Call::stat);
    return error != 0 ? error : real_.stat(file, out);
  }
  int stat_at(int directory, const char* name, struct ::stat& out) override {
    const int error = enter(Call::stat_at);
    return error != 0 ? error : real_.stat_at(directory, name, out);
  }
  int check_writable(int directory) override {
    const int error = enter(Call::check_writable);
    return error != 0 ? error : real_.check_writable(directory);
  }
  int touch(int file) override {
    const int error = enter(Call::touch);
    return error != 0 ? error : real_.touch(file);
  }
  int list(int directory, std::vector<std::string>& names) override {
    const int error = enter(Call::list);
    return error != 0 ? error : real_.list(directory, names);
  }
  int lock_byte(int file, std::uint64_t offset) override {
    const int error = enter(Call::lock);
    return error != 0 ? error : real_.lock_byte(file, offset);
  }
  std::uint64_t file_size_limit() override { return size_limit_.value_or(real_.file_size_limit()); }

 private:
  struct Fault {
    Call kind;
    int nth;
    int times;
    int error;
  };
  struct Hook {
    Call kind;
    std::function<void()> run;
  };

  int open_once(int directory, const char* name, int flags, mode_t mode) override {
    const int error = enter(Call::open);
    return error != 0 ? error : real_.open_at(directory, name, flags, mode);
  }
  ssize_t read_once(int file, std::span<std::byte> into) override {
    const int error = enter(Call::read);
    return error != 0 ? error : real_.read_full(file, into.first(std::min(into.size(), max_transfer_)));
  }
  ssize_t read_at_once(int file, std::span<std::byte> into, std::uint64_t offset) override {
    const int error = enter(Call::read);
    return error != 0 ? error
                      : real_.read_full_at(file, into.first(std::min(into.size(), max_transfer_)), offset);
  }
  ssize_t write_once(int file, std::span<const std::byte> bytes) override {
    if (const int error = enter(Call::write); error != 0) return error;
    const auto piece = bytes.first(std::min(bytes.size(), max_transfer_));
    const int result = real_.write_full(file, piece);
    return result < 0 ? result : static_cast<ssize_t>(piece.size());
  }
  int sync_once(int file) override {
    const int error = enter(Call::sync);
    return error != 0 ? error : real_.sync(file);
  }
  int close_once(int file) override {
    const int error = enter(Call::close);
    const int result = real_.close(file);  // a close that fails has closed all the same
    return error != 0 ? error : result;
  }

  int enter(Call kind) {
    calls_.push_back(kind);
    for (std::size_t i = 0; i < hooks_.size(); ++i) {
      if (hooks_[i].kind != kind && hooks_[i].kind != Call::any) continue;
      const auto run = std::move(hooks_[i].run);
      hooks_.erase(hooks_.begin() + static_cast<std::ptrdiff_t>(i));
      run();
      break;
    }
    int error = 0;
    for (Fault& fault : faults_) {
      if (fault.kind != kind && fault.kind != Call::any) continue;
      --fault.nth;
      if (fault.nth <= 0 && fault.nth > -fault.times) error = -fault.error;
    }
    return error;
  }

  FileSystem& real_ = real_file_system();
  std::vector<Fault> faults_;
  std::vector<Hook> hooks_;
  std::vector<Call> calls_;
  std::size_t max_transfer_ = static_cast<std::size_t>(-1);
  std::optional<std::uint64_t> size_limit_;
};

}  // namespace jitsmith::test
