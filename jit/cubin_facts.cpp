#include <jitsmith/jit/cubin_facts.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <jitsmith/jit/elf.hpp>
#include <jitsmith/jit/error.hpp>

namespace jitsmith {
namespace {

// Attributes in .nv.info sections: a format byte, an attribute byte, then 16 bits of value, or for format 4
// the 16-bit length of a value that follows. The names are those that cuobjdump -elf prints.
constexpr std::uint8_t k_format_sized = 0x04;
constexpr std::uint8_t k_frame_size = 0x11;
constexpr std::uint8_t k_param_info = 0x17;
constexpr std::uint8_t k_param_area_bytes = 0x19;
constexpr std::uint8_t k_register_count = 0x2f;
constexpr std::uint8_t k_param_info_v2 =
    0x45;  // used when the parameters do not fit the 14-bit sizes of the first

// From sm_90 on, the shared section of a kernel starts with 1 KiB that belongs to the system; ptxas does not
// count it.
constexpr std::uint64_t k_reserved_shared_bytes = 1024;

struct Attribute {
  std::uint8_t id;
  std::uint16_t half;                // the value of an unsized attribute
  std::span<const std::byte> value;  // that of a sized one
};

class Reader {
 public:
  Reader(std::span<const std::byte> cubin, std::string_view log, const std::string& kernel)
      : elf_(ElfView::parse(cubin)), log_(log), kernel_(kernel) {
    if (!elf_) fail("it is not an ELF file");
  }

  KernelFacts facts() const {
    KernelFacts facts;
    facts.lowered_name = kernel_;
    facts.registers = function_attribute(k_register_count, "the register count");
    facts.local_bytes = function_attribute(k_frame_size, "the frame size");
    facts.param_bytes = params();
    read_ptxas_report(facts);
    return facts;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(
        fmt::format("the code for kernel {} cannot be described: {}; this NVRTC writes a form that "
                    "jitsmith does not know, so use another version",
                    kernel_, what),
        std::string(log_));
  }

  template <typename T>
  T require(std::optional<T> value, const char* what) const {
    if (!value) fail(fmt::format("{} is missing or malformed", what));
    return *value;
  }

  template <typename Visit>
  void for_each_attribute(std::span<const std::byte> info, const Visit& visit) const {
    constexpr std::size_t k_head_bytes = 4;
    while (!info.empty()) {
      const auto format = require(read_at<std::uint8_t>(info, 0), "an attribute");
      const auto id = require(read_at<std::uint8_t>(info, 1), "an attribute");
      const auto half = require(read_at<std::uint16_t>(info, 2), "an attribute");
      info = info.subspan(k_head_bytes);
      const std::size_t length = format == k_format_sized ? half : 0;
      if (length > info.size()) fail("an attribute reaches beyond its section");
      visit(Attribute{id, half, info.first(length)});
      info = info.subspan(length);
    }
  }

  // An attribute of .nv.info that is a pair (symbol index, value).
  std::uint32_t function_attribute(std::uint8_t id, const char* what) const {
    const auto symbol = require(elf_->symbol_index(kernel_), "its symbol");
    std::optional<std::uint32_t> found;
    for_each_attribute(require(elf_->section(".nv.info"), "section .nv.info").bytes, [&](const Attribute& a) {
      if (a.id == id && read_at<std::uint32_t>(a.value, 0) == symbol)
        found = read_at<std::uint32_t>(a.value, 4);
    });
    return require(found, what);
  }

  std::vector<std::uint32_t> params() const {
    struct Param {
      std::uint32_t offset;
      std::uint32_t size;
    };
    std::map<std::uint16_t, Param> by_ordinal;
    std::uint32_t area_bytes = 0;
    const auto info = require(elf_->section(".nv.info." + kernel_), "its section .nv.info");
    for_each_attribute(info.bytes, [&](const Attribute& a) {
      if (a.id == k_param_area_bytes) area_bytes = a.half;
      if (a.id != k_param_info && a.id != k_param_info_v2) return;
      const auto ordinal = require(read_at<std::uint16_t>(a.value, 4), "a parameter");
      const auto offset = require(read_at<std::uint16_t>(a.value, 6), "a parameter");
      const auto size = a.id == k_param_info
                            ? require(read_at<std::uint32_t>(a.value, 8), "a parameter") >> 18
                            : require(read_at<std::uint16_t>(a.value, 8), "a parameter");
      by_ordinal[ordinal] = {offset, size};
    });
    std::vector<std::uint32_t> sizes;
    std::uint32_t end = 0;
    for (const auto& [ordinal, param] : by_ordinal) {
      if (ordinal != sizes.size() || param.offset < end) fail("its parameters do not follow one another");
      sizes.push_back(param.size);
      end = param.offset + param.size;
    }
    if (end != area_bytes) fail("its parameters do not fill their area");
    return sizes;
  }

  // The two lines after `Function properties for KERNEL`:
  //   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
  //   ptxas info    : Used 12 registers, used 1 barriers, 128 bytes smem
  void read_ptxas_report(KernelFacts& facts) const {
    const std::string heading = fmt::format("Function properties for {}\n", kernel_);
    const std::size_t start = log_.find(heading);
    if (start == std::string_view::npos) fail("ptxas reported nothing on it");
    const std::string_view report = log_.substr(start + heading.size());
    const std::string_view spills = report.substr(0, report.find('\n'));
    const std::size_t used = report.find(" Used ");
    const std::string_view usage =
        used != std::string_view::npos ? report.substr(used, report.find('\n', used) - used) : "";
    facts.spill_store_bytes =
        require(number_before(spills, " bytes spill stores"), "the size of spill stores");
    facts.spill_load_bytes = require(number_before(spills, " bytes spill loads"), "the size of spill loads");
    if (number_before(usage, " registers") != facts.registers)
      fail("ptxas and the code disagree on registers");
    if (number_before(spills, " bytes stack frame") != facts.local_bytes)
      fail("ptxas and the code disagree on the stack frame");

    facts.static_shared_bytes = number_before(usage, " bytes smem").value_or(0);
    const auto shared = elf_->section(".nv.shared." + kernel_);
    const std::uint64_t section_bytes = shared ? shared->size_bytes : 0;
    if (section_bytes < facts.static_shared_bytes ||
        section_bytes - facts.static_shared_bytes > k_reserved_shared_bytes)
      fail("ptxas and the code disagree on shared memory");
  }

  // 128 for ", 128 bytes smem"; nullopt where no such number stands.
  static std::optional<std::uint32_t> number_before(std::string_view text, std::string_view unit) {
    const std::size_t end = text.find(unit);
    if (end == std::string_view::npos) return std::nullopt;
    std::size_t begin = end;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
    std::uint32_t value = 0;
    const auto parsed = std::from_chars(text.data() + begin, text.data() + end, value);
    return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
  }

  std::optional<ElfView> elf_;
  std::string_view log_;
  const std::string& kernel_;
};

}  // namespace

KernelFacts facts_of_cubin(std::span<const std::byte> cubin, std::string_view log,
                           const std::string& lowered_name) {
  return Reader(cubin, log, lowered_name).facts();
}

}  // namespace jitsmith
