// SingleFlight: many callers, one build. The first caller of a key builds; the others wait and get the same
// value or the same exception. A value is kept, unless it is
// said not to be. A failure that would repeat (CompileError of the same input)
// is kept too and thrown again in full; any other failure is forgotten, and the next caller builds afresh.
// In a child of fork what was ready stays, and what other threads of the parent were building is built anew.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {

enum class KeepValues { yes, no };  // no: of use to those who wait for it only

template <class Key, class Value, KeepValues Keep = KeepValues::yes>
class SingleFlight {
 public:
  // What is ready for `key`, without waiting or building. Throws a kept failure.
  std::optional<Value> find(const Key& key) {
    const std::scoped_lock lock(mutex_);
    drop_flights_of_parent();
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
      drop_flights_of_parent();
      if (const auto place = flights_.find(key); place != flights_.end()) {
        const std::shared_future<Value> flight = place->second;
        lock.unlock();
        return flight.get();
      }
      const Change change(*this);
      flights_.emplace(key, promise.get_future().share());
    }
    try {
      Value value = build();
      if (Keep == KeepValues::no) forget(key);
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
    drop_flights_of_parent();
    const Change change(*this);
    flights_.erase(key);
  }

  // Marks that the map is being changed, for a fork in that moment.
  class Change {
   public:
    explicit Change(SingleFlight& flight) : flight_(flight) { flight_.changing_ = true; }
    ~Change() { flight_.changing_ = false; }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    SingleFlight& flight_;
  };

  // The threads that were building are not in the child: their promises would never be kept.
  void drop_flights_of_parent() {
    if (!process_.is_new_process()) return;
    if (changing_.exchange(false)) {
      ::new (static_cast<void*>(std::addressof(flights_))) Flights;  // left half-changed: not to be touched
      return;
    }
    std::erase_if(flights_, [](const auto& flight) {
      return flight.second.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    });
  }

  using Flights = std::unordered_map<Key, std::shared_future<Value>>;

  ForkMutex mutex_;
  ForkCheck process_;
  std::atomic<bool> changing_{false};
  Flights flights_;
};

}  // namespace jitsmith
