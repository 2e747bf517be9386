// Recorder: appends to a recording (recording.hpp) while a program runs. Many processes may append to one
// file at once: each record is one write at its end. Private.
//
// Recording is an aid and never in the way: the first trouble is told once, as the warning "record.failed",
// and then recording is off. Thread safe; a forked child goes on with the same file.
#pragma once

#include <string>
#include <unordered_set>

#include <jitsmith/cache/descriptor.hpp>
#include <jitsmith/cache/digest.hpp>
#include <jitsmith/cache/event.hpp>
#include <jitsmith/cache/file_system.hpp>
#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/jit/params.hpp>

namespace jitsmith {

class Recorder {
 public:
  // An empty `file`: records nothing. The file is opened, and made, with the first record. `file_system` must
  // outlive the recorder.
  Recorder(FileSystem& file_system, std::string file, EventSink events)
      : file_system_(file_system), path_(std::move(file)), events_(std::move(events)) {}

  // Appends the specialisation, unless this recorder has done so before or the file held it when it was
  // opened: a program that starts every day records what is new. `params` and `request` complete; no
  // request when the variant was asked for by itself.
  void record(const std::string& op, const std::string& arch, const std::string& variant,
              const Params& params, const Params* request) noexcept;

 private:
  // Why it failed and what to do, or "".
  std::string open();
  std::string append(const std::string& line);
  std::string record_line(const std::string& line);

  FileSystem& file_system_;
  const std::string path_;
  const EventSink events_;

  ForkMutex mutex_;
  Descriptor file_;
  std::unordered_set<Digest> known_;
  bool failed_ = false;
};

}  // namespace jitsmith
