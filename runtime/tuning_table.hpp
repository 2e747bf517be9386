// TuningTable: measured choices, one JSON record a line:
//
//   {"op": "skinny_gemm", "arch": "sm_90a", "multiprocessors": 132,
//    "when": {"m": [1, 2], "n": 2112, "k": 7168, "out": "bf16"},
//    "variant": "simt", "params": {"threads": 128, "tile_m": 1, "tile_n": 4, ...},
//    "measured": {"us": 9.1, "replaced": "heuristic", "replaced_us": 9.8, "rounds": 3, "rounds_overlap":
//    false}, "provenance": {"device": "NVIDIA H200", "compiler": "NVRTC 13.0", "date": "2026-11-29", "note":
//    "..."}}
//
// `when` has a condition for any request parameter: a value, or [low, high] for integers, both included.
// `multiprocessors` may be left out: any number. A row matches on these alone, never on a device's marketing
// name. Of several matching rows the one with the most exact conditions wins, then the earlier one.
// Admission: an output compared with the reference, and at least 5 % faster than what it replaces with
// non-overlapping rounds; a row without "measured" must say "published, not measured here" in its provenance
// note.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <jitsmith/jit/params.hpp>
#include <jitsmith/runtime/device_facts.hpp>

namespace jitsmith {

struct Measurement {
  double us = 0;
  std::string replaced;  // what the row was measured against
  double replaced_us = 0;
  std::int64_t rounds = 0;
  bool rounds_overlap = false;
};

struct TableRow {
  // A value in its text form, or an inclusive range of integers.
  using Condition = std::variant<std::string, std::pair<std::int64_t, std::int64_t>>;

  std::string op, arch;
  std::optional<std::uint32_t> multiprocessors;
  std::map<std::string, Condition> when;
  std::string variant;
  std::vector<std::pair<std::string, std::string>>
      params;  // name, value text; checked against the schema when used
  std::optional<Measurement> measured;
  std::map<std::string, std::string> provenance;
};

class TuningTable {
 public:
  // Reads JSON Lines. A bad line is skipped and reported in `problems` as "file:line: sentence"; blank lines
  // are allowed.
  static TuningTable parse(std::string_view text, std::string_view file_name,
                           std::vector<std::string>& problems);

  // The same for a file; a file that can't be read is one problem and gives an empty table.
  static TuningTable read(const std::string& file, std::vector<std::string>& problems);

  // One line a row, in a canonical form: parse(text()) gives the same table.
  std::string text() const;

  // Replaces `file` as a whole (temporary file beside it, then rename). Throws InvalidRequest when it can't
  // be written.
  void write(const std::string& file) const;

  // Adds a row, in place of one with the same op, arch, multiprocessors and conditions. Throws
  // InvalidRequest, with the sentence that parse() reports, for a row that parse() would skip.
  void add(TableRow row);

  // The row that answers this request, or nullptr.
  const TableRow* match(std::string_view op, const Params& request, const DeviceFacts& device) const;

  const std::vector<TableRow>& rows() const { return rows_; }

 private:
  std::vector<TableRow> rows_;
};

}  // namespace jitsmith
