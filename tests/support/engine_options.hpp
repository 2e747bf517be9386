// Options that depend on nothing of the user's surroundings but the compilers, and a count of what an engine
// does.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <jitsmith/runtime/options.hpp>

namespace jitsmith::test {

// How often each event came, and the last text of each.
class Events {
 public:
  EventSink sink() {
    return [state = state_](const Event& event) {
      const std::scoped_lock lock(state->mutex);
      ++state->counts[std::string(event.what)];
      state->texts[std::string(event.what)] = event.text;
    };
  }
  int count(const std::string& what) const {
    const std::scoped_lock lock(state_->mutex);
    const auto place = state_->counts.find(what);
    return place == state_->counts.end() ? 0 : place->second;
  }
  std::string text(const std::string& what) const {
    const std::scoped_lock lock(state_->mutex);
    const auto place = state_->texts.find(what);
    return place == state_->texts.end() ? std::string() : place->second;
  }

 private:
  struct State {
    std::mutex mutex;
    std::map<std::string, int> counts;
    std::map<std::string, std::string> texts;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline Options host_options(const std::string& cache_directory) {
  const Options environment = Options::from_environment();
  Options options;
  options.executor = Executor::host;
  options.host_compiler = environment.host_compiler;
  options.nvrtc = environment.nvrtc;
  options.cache.explicit_dir = cache_directory;
  return options;
}

// For what is never compiled.
inline Options options_without_cache() {
  Options options = host_options("");
  options.cache.enabled = false;
  return options;
}

inline Options cuda_options(const std::string& cache_directory) {
  Options options = host_options(cache_directory);
  options.executor = Executor::cuda;
  options.driver_path = Options::from_environment().driver_path;
  return options;
}

}  // namespace jitsmith::test
