// skinny_gemm on arrays: what NumPy files mean, random inputs, and the check against the reference.
#include <random>

#include <fmt/format.h>

#include <jitsmith/jit/error.hpp>
#include <jitsmith/runtime/bf16.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>
#include <jitsmith/runtime/ops/skinny_gemm_reference.hpp>

namespace jitsmith {
namespace {

const Array* find(const Arrays& arrays, std::string_view name) {
  const auto place = arrays.find(name);
  return place == arrays.end() ? nullptr : &place->second;
}

[[noreturn]] void refuse(std::string_view name, const Array& array, std::string_view rule) {
  throw InvalidRequest(fmt::format("skinny_gemm: {} is {}; give {}", name, array.describe(), rule));
}

// The format that an operand's dtype stands for; which of them are served is the contract's business.
std::string format_of(std::string_view name, const Array& array) {
  if (array.shape.size() != 2)
    refuse(name, array, fmt::format("two dimensions, [{}, K]", name == "x" ? 'M' : 'N'));
  if (array.type == ElementType::bf16) return "bf16";
  if (array.type == ElementType::f32) return "f32";
  refuse(name, array, "bf16 (a uint16 file)");
}

Params request_of(const Arrays& inputs, const Params& settings) {
  const Array& x = inputs.at("x");
  const Array& w = inputs.at("w");
  Params request = settings;
  // What the arrays say may be set as well, but not otherwise.
  const auto say = [&request](std::string_view name, Value from_arrays) {
    if (const Value* set = request.find(name); set != nullptr && *set != from_arrays)
      throw InvalidRequest(fmt::format("skinny_gemm: {}={} was set but the arrays say {}; leave it out", name,
                                       to_string(*set), to_string(from_arrays)));
    request.set(name, std::move(from_arrays));
  };
  say("x_format", format_of("x", x));
  say("w_format", format_of("w", w));
  const std::int64_t m = x.shape[0], n = w.shape[0], k = x.shape[1];
  if (w.shape[1] != k) refuse("w", w, fmt::format("[N, {}], since x is {}", k, x.describe()));
  say("m", m), say("n", n), say("k", k);
  if (request.find("out") == nullptr) request.set("out", ElementType::bf16);
  if (request.find("aligned") == nullptr) request.set("aligned", k % 8 == 0);

  const Array* bias = find(inputs, "bias");
  if (bias != nullptr &&
      (bias->shape != std::vector{n} || (bias->type != ElementType::bf16 && bias->type != ElementType::f32)))
    refuse("bias", *bias, fmt::format("bf16 or f32 [{}]", n));
  say("bias", std::string(bias == nullptr ? "none" : name_of(bias->type)));

  const Array* residual = find(inputs, "residual");
  const ElementType out = request.type("out");
  if (residual != nullptr && (residual->shape != std::vector{m, n} || residual->type != out))
    refuse("residual", *residual, fmt::format("{} [{}, {}], the type and shape of y", name_of(out), m, n));
  say("residual", residual != nullptr);
  return request;
}

Arrays outputs_of(const Params& request, const Arrays&) {
  Arrays outputs;
  outputs.emplace("y", Array::zeros(request.type("out"), {request.integer("m"), request.integer("n")}));
  return outputs;
}

void launch(const Plan& plan, Stream stream, const Arrays&, const Pointers& pointers) {
  const auto pointer = [&pointers](std::string_view name) -> void* {
    const auto place = pointers.find(name);
    return place == pointers.end() ? nullptr : place->second;
  };
  TypedPlan<SkinnyGemm>(plan, skinny_gemm_from(plan.state().request))
      .launch(stream, {.x = pointer("x"),
                       .w = pointer("w"),
                       .y = pointer("y"),
                       .bias = pointer("bias"),
                       .residual = pointer("residual")});
}

Array random_array(ElementType type, std::vector<std::int64_t> shape, std::mt19937_64& random) {
  Array array = Array::zeros(type, std::move(shape));
  const auto next = [&random] {
    return static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1.0);
  };  // [-1, 1)
  for (std::int64_t i = 0; i < array.count(); ++i)
    if (type == ElementType::bf16)
      array.data<std::uint16_t>()[i] = bf16_from_float(next());
    else
      array.data<float>()[i] = next();
  return array;
}

Arrays inputs_for(const Params& request, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::int64_t m = request.integer("m"), n = request.integer("n"), k = request.integer("k");
  Arrays inputs;
  inputs.emplace("x", random_array(ElementType::bf16, {m, k}, random));
  inputs.emplace("w", random_array(ElementType::bf16, {n, k}, random));
  if (const std::string& bias = request.choice("bias"); bias != "none")
    inputs.emplace("bias", random_array(bias == "f32" ? ElementType::f32 : ElementType::bf16, {n}, random));
  if (request.flag("residual")) inputs.emplace("residual", random_array(request.type("out"), {m, n}, random));
  return inputs;
}

CheckResult check(const Params&, const Arrays& inputs, const Arrays& outputs) {
  return check_skinny_gemm({inputs.at("x"), inputs.at("w"), find(inputs, "bias"), find(inputs, "residual")},
                           outputs.at("y"));
}

}  // namespace

ArrayInterface skinny_gemm_arrays() {
  return {.inputs = {{"x", "bf16 [M, K]"},
                     {"w", "bf16 [N, K]"},
                     {"bias", "bf16 or f32 [N]", false},
                     {"residual", "of the type of y, [M, N]", false}},
          .outputs = {{"y", "bf16 or f32 [M, N], by --set out"}},
          .make_request = request_of,
          .make_outputs = outputs_of,
          .launch = launch,
          .make_inputs = inputs_for,
          .check = check,
          .demo = {{"m", std::int64_t{4}},
                   {"n", std::int64_t{1024}},
                   {"k", std::int64_t{2048}},
                   {"bias", std::string("f32")},
                   {"residual", true}}};
}

}  // namespace jitsmith
