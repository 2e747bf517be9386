// Selection: which variant runs, with which parameters, and why. The decision is pure:
// (op, request, device facts, tables, forced choice) -> Selection. No clock, no disk, no environment.
//
// Order: forced by the caller -> the user's table -> the shipped table -> the cost model over the candidates
// -> the generic variant; or declined, with the reason, when the request is outside the op's contract.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <jitsmith/runtime/device_facts.hpp>
#include <jitsmith/runtime/op.hpp>
#include <jitsmith/runtime/tuning_table.hpp>

namespace jitsmith {

enum class SelectionSource { forced, user_table, shipped_table, heuristic, generic };

struct Candidate {
  std::string variant;
  Params params;
  std::optional<double> cost_us;  // by the cost model
  std::string why_not;            // why it lost; empty for the winner
};

struct Selection {
  Verdict verdict;

  // Set when verdict.kind is serve.
  const Variant* variant = nullptr;
  Params params;
  LaunchShape shape;
  SelectionSource source = SelectionSource::heuristic;
  std::string reason;                 // one sentence
  std::vector<std::string> notes;     // table rows that were passed over, and why
  std::vector<Candidate> candidates;  // everything looked at, the best first
};

// A variant's name, and any of its parameters: "simt", "simt:threads=128,tile_n=4". "generic" is the op's
// generic variant with its parameters.
struct ForcedChoice {
  std::string variant;
  std::vector<std::pair<std::string, std::string>> params;  // name, value text

  bool generic() const { return variant == "generic"; }

  // Throws InvalidRequest for a text of another form.
  static ForcedChoice parse(std::string_view text);
};

std::string to_string(const ForcedChoice& forced);  // the form that parse() reads

struct SelectionInputs {
  const TuningTable* user_table = nullptr;
  const TuningTable* shipped_table = nullptr;
  std::optional<ForcedChoice> forced;
};

// `request` complete. Throws InvalidRequest when a forced choice does not exist or does not fit the request.
Selection select(const Op& op, const Params& request, const DeviceFacts& device,
                 const SelectionInputs& inputs);

std::string_view name_of(SelectionSource source);

// The whole decision for people, a few lines: request, device, winner, source, the candidates and why each
// lost.
std::string explain(const Op& op, const Params& request, const DeviceFacts& device,
                    const Selection& selection);

}  // namespace jitsmith
