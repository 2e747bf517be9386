// skinny_gemm on a device, as tests run it: operands laid out with strides and offsets, guard bytes around
// and between the rows of Y, Y poisoned; and what must come out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <jitsmith/runtime/bf16.hpp>
#include <jitsmith/runtime/device.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>
#include <jitsmith/runtime/ops/skinny_gemm_reference.hpp>

namespace jitsmith::test {

// `extreme` overflows fp32 on the way, where fp64 need not: there only the model says what is right.
enum class GemmValues { random, integers, special, extreme };

struct GemmData {
  Array x, w;
  std::optional<Array> bias, residual;

  SkinnyGemmOperands operands() const {
    return {x, w, bias ? &*bias : nullptr, residual ? &*residual : nullptr};
  }
};

// How operands lie in memory.
struct GemmLayout {
  std::int64_t x_pad = 0, w_pad = 0, y_pad = 0, residual_pad = 0;  // elements between rows
  std::int64_t offset = 0;  // of X and W from 16-byte alignment, elements
  bool in_place = false;    // Y is the residual
};

// What is run, on what, and how that lies.
struct GemmCase {
  SkinnyGemm request;
  GemmLayout layout{};
  GemmValues values = GemmValues::random;
};

// `request` with K rounded up to what its alignment allows, and the operands, layout and values that levels 3
// to 6 of a row of pairwise() mean.
inline GemmCase gemm_case(SkinnyGemm request, const std::vector<std::size_t>& level) {
  const std::int64_t grain = request.aligned ? 8 : 1;  // of k and strides
  request.k = (request.k + grain - 1) / grain * grain;
  request.bias = SkinnyGemmBiasType{static_cast<std::uint8_t>(level[3])};
  request.residual = level[4] != 0;
  const std::int64_t pads[][4] = {{0, 0, 0, 0}, {1, 3, 5, 2}, {16, 0, 129, 1}};
  const auto& pad = pads[level[5]];
  return {.request = request,
          .layout = {.x_pad = pad[0] * grain,
                     .w_pad = pad[1] * grain,
                     .y_pad = pad[2],
                     .residual_pad = pad[3],
                     .offset = request.aligned ? 0 : 1,
                     .in_place = level[4] == 2},
          .values = GemmValues{static_cast<int>(level[6])}};
}

struct GemmResult {
  Array y;
  bool guards_intact = false;
};

inline void set_element(Array& array, std::int64_t index, float value) {
  if (array.type == ElementType::bf16)
    array.data<std::uint16_t>()[index] = bf16_from_float(value);
  else
    array.data<float>()[index] = value;
}

inline void fill(Array& array, GemmValues values, std::mt19937_64& random) {
  // Infinities, NaNs, zeros, subnormals, the least normal and a large one; then the largest.
  constexpr std::uint32_t k_special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0xffc10000, 0x00000000,
                                         0x80000000, 0x00010000, 0x80400000, 0x00800000, 0x5d800000,
                                         0xdd800000, 0x7f7f0000, 0xff7f0000};
  const std::size_t specials =
      values == GemmValues::extreme ? std::size(k_special) : std::size(k_special) - 2;
  // A few in all: one NaN in a row of X hides everything else that goes into its outputs.
  const std::uint64_t rarity = std::max<std::uint64_t>(4, static_cast<std::uint64_t>(array.count()) / 8);
  for (std::int64_t i = 0; i < array.count(); ++i) {
    float value = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
    if (values == GemmValues::integers) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
    if (values >= GemmValues::special && random() % rarity == 0)
      value = std::bit_cast<float>(k_special[random() % specials]);
    set_element(array, i, value);
  }
}

inline GemmData gemm_data(const SkinnyGemm& r, GemmValues values, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto make = [&](ElementType type, std::vector<std::int64_t> shape) {
    Array array = Array::zeros(type, std::move(shape));
    fill(array, values, random);
    return array;
  };
  GemmData data{make(ElementType::bf16, {r.m, r.k}), make(ElementType::bf16, {r.n, r.k}), {}, {}};
  if (r.bias != SkinnyGemmBiasType::none)
    data.bias = make(r.bias == SkinnyGemmBiasType::f32 ? ElementType::f32 : ElementType::bf16, {r.n});
  if (r.residual) data.residual = make(r.out, {r.m, r.n});
  return data;
}

// A matrix in the memory of a device. `guard` bytes before and after; these and the gaps between rows hold
// `filler`.
class LaidOut {
 public:
  LaidOut(Device& device, const Array& dense, std::int64_t pad, std::int64_t offset, std::size_t guard,
          int filler)
      : device_(device),
        rows_(dense.shape.size() == 2 ? dense.shape[0] : 1),
        columns_(dense.shape.back()),
        stride_(columns_ + pad),
        element_(size_of(dense.type)),
        begin_(guard + static_cast<std::size_t>(offset) * element_),
        before_(begin_ + (rows_ == 0 ? 0 : row(rows_ - 1) + row_bytes()) + guard,
                static_cast<std::byte>(filler)),
        buffer_(device, before_.size()) {
    for (std::int64_t r = 0; r < rows_ && row_bytes() != 0; ++r)
      std::memcpy(before_.data() + begin_ + row(r),
                  dense.bytes.data() + static_cast<std::size_t>(r) * row_bytes(), row_bytes());
    device.copy_in(buffer_.data(), before_.data(), before_.size());
  }

  void* data() const { return static_cast<std::byte*>(buffer_.data()) + begin_; }
  std::int64_t stride() const { return stride_; }

  // The matrix as it is now, and whether every other byte is what it was.
  GemmResult read(ElementType type) const {
    std::vector<std::byte> now(before_.size());
    device_.copy_out(now.data(), buffer_.data(), now.size());
    GemmResult result{Array::zeros(type, {rows_, columns_}), false};
    for (std::int64_t r = 0; r < rows_ && row_bytes() != 0; ++r) {
      const std::size_t at = begin_ + row(r);
      std::memcpy(result.y.bytes.data() + static_cast<std::size_t>(r) * row_bytes(), now.data() + at,
                  row_bytes());
      std::memcpy(now.data() + at, before_.data() + at, row_bytes());
    }
    result.guards_intact = now == before_;
    return result;
  }

 private:
  std::size_t row(std::int64_t r) const { return static_cast<std::size_t>(r * stride_) * element_; }
  std::size_t row_bytes() const { return static_cast<std::size_t>(columns_) * element_; }

  Device& device_;
  std::int64_t rows_, columns_, stride_;
  std::size_t element_, begin_;
  std::vector<std::byte> before_;
  Buffer buffer_;
};

// The operands of one launch in the memory of a device. Gaps between rows are NaN, and the allocations of X
// and W end with their last element.
class GemmMemory {
 public:
  GemmMemory(Device& device, const SkinnyGemm& r, const GemmData& data, const GemmLayout& layout)
      : out_(r.out),
        x_(device, data.x, layout.x_pad, layout.offset, 0, 0xff),
        w_(device, data.w, layout.w_pad, layout.offset, 0, 0xff),
        y_(device, layout.in_place ? *data.residual : poisoned(r), layout.y_pad, 0, 64, 0xa5) {
    if (data.bias) bias_.emplace(device, *data.bias, 0, 0, 0, 0xff);
    if (data.residual && !layout.in_place)
      residual_.emplace(device, *data.residual, layout.residual_pad, 0, 0, 0xff);
    args_ = {.x = x_.data(),
             .w = w_.data(),
             .y = y_.data(),
             .x_stride = x_.stride(),
             .w_stride = w_.stride(),
             .y_stride = y_.stride()};
    args_.programmatic = r.programmatic;
    if (bias_) args_.bias = bias_->data();
    if (data.residual) args_.residual = layout.in_place ? y_.data() : residual_->data();
    if (data.residual) args_.residual_stride = layout.in_place ? y_.stride() : residual_->stride();
  }

  const SkinnyGemm::Args& args() const { return args_; }
  GemmResult result() const { return y_.read(out_); }

 private:
  static Array poisoned(const SkinnyGemm& r) {
    Array y = Array::zeros(r.out, {r.m, r.n});
    std::ranges::fill(y.bytes, std::byte{0xee});
    return y;
  }

  ElementType out_;
  LaidOut x_, w_, y_;
  std::optional<LaidOut> bias_, residual_;
  SkinnyGemm::Args args_;
};

inline GemmResult run_gemm(Device& device, const TypedPlan<SkinnyGemm>& plan, const GemmData& data,
                           const GemmLayout& layout = {}) {
  const GemmMemory memory(device, plan.request(), data, layout);
  plan.launch(nullptr, memory.args());
  device.synchronize();
  return memory.result();
}

inline std::string to_string(const SkinnyGemm& r) {
  return "m=" + std::to_string(r.m) + " n=" + std::to_string(r.n) + " k=" + std::to_string(r.k) +
         " out=" + std::string(name_of(r.out)) + " bias=" + std::string(choice_name(r.bias)) +
         (r.residual ? " residual" : "") + (r.aligned ? " aligned" : "") +
         (r.programmatic ? " programmatic" : "");
}

}  // namespace jitsmith::test
