// PlanTable: ready plans by request. Reading takes no lock; nothing is ever removed before the table dies.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include <jitsmith/cache/fork_mutex.hpp>
#include <jitsmith/jit/error.hpp>
#include <jitsmith/jit/params.hpp>
#include <jitsmith/runtime/plan.hpp>

namespace jitsmith {

// A typed request as plain words: one for each field, so that comparing and hashing it takes some ten
// nanoseconds.
struct PlanKey {
  static constexpr std::size_t k_capacity = 22;

  const void* device = nullptr;
  std::string_view op;  // the type's own constant: lives for ever
  std::uint32_t count = 0;
  std::array<std::int64_t, k_capacity> words{};

  void append(std::int64_t word) {
    if (count == k_capacity)
      throw InvalidRequest("a typed request has more fields than a plan key holds; use fewer or Request");
    words[count++] = word;
  }
  std::uint64_t hash() const;
  friend bool operator==(const PlanKey& a, const PlanKey& b);
};

template <class R>
PlanKey plan_key(const R& request, const void* device) {
  PlanKey key{.device = device, .op = R::k_op};
  request.visit([&key](std::string_view, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    static_assert(std::integral<Field> || std::is_enum_v<Field>,
                  "a request's fields are integers, bools and enums");
    static_assert(sizeof(Field) < sizeof(std::int64_t) || std::is_signed_v<Field>,
                  "a value must fit into 64 bits");
    key.append(static_cast<std::int64_t>(field));
  });
  return key;
}

// The generic form of a typed request. Enums other than ElementType need a choice_name(field) that ADL finds.
template <class R>
Params params_of(const R& request) {
  Params params;
  request.visit([&params](std::string_view name, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, bool> || std::is_same_v<Field, ElementType>)
      params.set(name, field);
    else if constexpr (std::is_enum_v<Field>)
      params.set(name, std::string(choice_name(field)));
    else
      params.set(name, static_cast<std::int64_t>(field));
  });
  return params;
}

class PlanTable {
 public:
  PlanTable() = default;
  ~PlanTable();
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;

  // The state of a ready plan, or nullptr.
  const std::shared_ptr<const PlanState>* find(const PlanKey& key) const;

  // Adds the plan unless another thread was faster; returns the one that is in the table.
  const std::shared_ptr<const PlanState>& insert(const PlanKey& key, std::shared_ptr<const PlanState> plan);

 private:
  struct Node {
    PlanKey key;
    std::shared_ptr<const PlanState> plan;
    Node* next;  // set before the node is published, never changed after
  };

  // Plans number in the hundreds; chains stay short.
  static constexpr std::size_t k_buckets = 1024;
  std::array<std::atomic<Node*>, k_buckets> buckets_{};
  ForkMutex inserting_;
};

}  // namespace jitsmith
