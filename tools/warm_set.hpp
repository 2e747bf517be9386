// WarmSet: the binaries that a cache is to have, each once.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/recording.hpp>
#include <jitsmith/tools/specialisation.hpp>

namespace jitsmith {

class WarmSet {
 public:
  explicit WarmSet(const Engine& engine) : engine_(engine) {}

  // What `request` runs on `device`. Throws InvalidRequest.
  void add(const Request& request, const DeviceFacts& device, const std::optional<ForcedChoice>& forced = {});

  // What was recorded. Throws InvalidRequest for a record that the ops here do not admit.
  void add(const KernelRecord& record);

  // What the record's request runs on `device`; on the recorded architecture that is what was recorded, for
  // the program that recorded may have had another table or forced it. Throws InvalidRequest, also for a
  // record without a request.
  void add(const KernelRecord& record, const DeviceFacts& device);

  // Whatever a request of `op` may run on `device`: every candidate and the generic variant of its sample
  // requests.
  void add_all(const Op& op, const DeviceFacts& device);

  const std::vector<Specialisation>& items() const { return items_; }
  std::size_t without_kernel() const {
    return without_kernel_;
  }  // requests that are declined, or have no output

 private:
  void insert(Specialisation specialisation);

  const Engine& engine_;
  std::vector<Specialisation> items_;
  std::set<std::string> known_;
  std::size_t without_kernel_ = 0;
};

// The requests that stand for all of `op`, complete and served: every combination of the parameters with few
// values that is served at the extents of the demo, each with every combination of a few small and large
// extents.
std::vector<Params> sample_requests(const Op& op, const DeviceFacts& device);

}  // namespace jitsmith
