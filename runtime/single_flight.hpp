// SingleFlight: many callers, one build. The first caller of a key builds; the others wait and get the same
// value or the same exception. A value is kept. A failure that would repeat (CompileError of the same input)
// is kept too and thrown again in full; any other failure is forgotten, and the next caller builds afresh.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <jitsmith/jit/error.hpp>

namespace jitsmith {

template <class Key, class Value>
class SingleFlight {
 public:
  // What is ready for `key`, without waiting or building. Throws a kept failure.
  std::optional<Value> find(const Key& key) const {
    const std::scoped_lock lock(mutex_);
    const auto place = flights_.find(key);
    if (place == flights_.end() ||
        place->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      return std::nullopt;
    return place->second.get();
  }

  template <class Build>
  Value get(const Key& key, Build&& build) {
    std::promise<Value> promise;
    {
      std::unique_lock lock(mutex_);
      const auto [place, first] = flights_.try_emplace(key);
      if (!first) {
        const std::shared_future<Value> flight = place->second;
        lock.unlock();
        return flight.get();
      }
      place->second = promise.get_future().share();
    }
    try {
      Value value = build();
      promise.set_value(value);
      return value;
    } catch (const TransientCompileError&) {
      forget(key);
      promise.set_exception(std::current_exception());
      throw;
    } catch (const CompileError&) {
      promise.set_exception(std::current_exception());
      throw;
    } catch (...) {
      forget(key);
      promise.set_exception(std::current_exception());
      throw;
    }
  }

 private:
  void forget(const Key& key) {
    const std::scoped_lock lock(mutex_);
    flights_.erase(key);
  }

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::shared_future<Value>> flights_;
};

}  // namespace jitsmith
