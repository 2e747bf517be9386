#include <jitsmith/runtime/plan_table.hpp>

#include <algorithm>

namespace jitsmith {

std::uint64_t PlanKey::hash() const {
  // Multiply and fold a word at a time; the words are small integers, and the buckets are few.
  std::uint64_t state =
      reinterpret_cast<std::uintptr_t>(device) ^ (reinterpret_cast<std::uintptr_t>(op.data()) << 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    state = (state ^ static_cast<std::uint64_t>(words[i])) * 0x9e3779b97f4a7c15u;
    state ^= state >> 32;
  }
  return state;
}

bool operator==(const PlanKey& a, const PlanKey& b) {
  return a.device == b.device && a.count == b.count && a.op == b.op &&
         std::equal(a.words.begin(), a.words.begin() + a.count, b.words.begin());
}

PlanTable::~PlanTable() {
  for (std::atomic<Node*>& bucket : buckets_)
    for (Node* node = bucket.load(std::memory_order_relaxed); node != nullptr;)
      delete std::exchange(node, node->next);
}

const std::shared_ptr<const PlanState>* PlanTable::find(const PlanKey& key) const {
  for (const Node* node = buckets_[key.hash() % k_buckets].load(std::memory_order_acquire); node != nullptr;
       node = node->next)
    if (node->key == key) return &node->plan;
  return nullptr;
}

const std::shared_ptr<const PlanState>& PlanTable::insert(const PlanKey& key,
                                                          std::shared_ptr<const PlanState> plan) {
  const std::scoped_lock lock(inserting_);
  if (const auto* known = find(key)) return *known;
  std::atomic<Node*>& bucket = buckets_[key.hash() % k_buckets];
  Node* node = new Node{key, std::move(plan), bucket.load(std::memory_order_relaxed)};
  bucket.store(node, std::memory_order_release);
  return node->plan;
}

}  // namespace jitsmith
