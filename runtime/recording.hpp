// Recording: the specialisations that a program asked for, as one JSON object a line, for `jitsmith warm`:
//
//   {"op":"skinny_gemm","arch":"sm_90a","variant":"simt","params":{"threads":128,...},
//    "request":{"m":1,"n":2112,...}}                             (on one line, with the keys in this order)
//
// `params` are complete. `request` is the first request that asked for them, complete too: what another
// architecture would run is selected from it. It is missing where a variant was asked for by itself. Values
// stay text here, as in a request file: only an op's schema knows their types, and a recording must be
// readable without any op. Recorder (recorder.hpp) writes one.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <jitsmith/jit/params.hpp>
#include <jitsmith/jit/schema.hpp>

namespace jitsmith {

// Neither written nor read beyond it: some 200,000 specialisations.
inline constexpr std::size_t k_max_recording_bytes = std::size_t{64} << 20;

using NamedTexts = std::vector<std::pair<std::string, std::string>>;  // name, value text

NamedTexts texts_of(const Params& params);

// The inverse, as `schema` types the values; not yet complete. Throws InvalidRequest that names `owner` for
// an unknown name or a value that is not allowed.
Params typed(const NamedTexts& texts, const Schema& schema, std::string_view owner);

// One binary that was asked for, or is to be made.
struct KernelRecord {
  std::string op, arch, variant;
  NamedTexts params;
  std::optional<NamedTexts> request;

  friend bool operator==(const KernelRecord&, const KernelRecord&) = default;

  // Throws InvalidRequest with one sentence for a line of another form.
  static KernelRecord parse(std::string_view line);
};

// The canonical line of the record, without a newline.
std::string to_json(const KernelRecord& record);

struct Recording {
  struct Line {
    std::size_t number = 0;  // in the file, from 1
    KernelRecord record;
  };
  std::vector<Line> lines;

  // Lines that are no JSON: a program that is killed while it records leaves half of one, which may also be
  // in front of another's. They are skipped, for what they asked for is recorded again when it is next.
  std::size_t torn_lines = 0;
  std::size_t first_torn_line = 0;  // its number

  // Called with each record in the order of the file. Throws InvalidRequest for one that is of no use.
  using Use = std::function<void(const KernelRecord&)>;

  // A bad line that is not torn, or of no use, is skipped and reported in `problems` as "file:line:
  // sentence", in the order of the file; blank lines are allowed, and of equal records the first stays.
  static Recording parse(std::string_view text, std::string_view file, std::vector<std::string>& problems,
                         const Use& use = {});

  // The same for a file of at most k_max_recording_bytes. Throws InvalidRequest for one that can't be read.
  static Recording read(const std::string& file, std::vector<std::string>& problems, const Use& use = {});

  // Parsing it gives equal records in the same order.
  std::string text() const;
};

}  // namespace jitsmith
