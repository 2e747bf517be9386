// skinny_gemm beside cuBLAS and the read floor, on one GPU.
//
//   bench_skinny_gemm REQUESTS.json [--cublas PATH] [--sweep] [--programmatic] [--csv FILE]
//
// For each request: the dispatched plan, cuBLAS's default choice, with --sweep the other candidates
// as well (those that the cost model puts within 2.2 times the best); with
// --programmatic, ours by programmatic dependent launch.
// Each output is compared with the fp64 reference first. Times are medians over alternated rounds of CUDA
// graphs; W is rotated over more than 2.5 times the L2, and nothing may be compiled while the clock runs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>

#include <fmt/format.h>

#include <jitsmith/runtime/engine.hpp>
#include <jitsmith/runtime/ops/skinny_gemm.hpp>
#include <jitsmith/runtime/request_file.hpp>

#include "cublas.hpp"
#include "cuda_graphs.hpp"
#include "read_rate.hpp"

namespace jitsmith::bench {
namespace {

constexpr int k_rounds = 9;
constexpr std::size_t k_min_launches = 64;
constexpr double k_rotation = 2.5;      // times the L2
constexpr double k_sweep_within = 2.2;  // of what the cost model expects of the best

struct Settings {
  std::string requests, cublas, csv;
  bool sweep = false, programmatic = false;
};

// The operands of one request on the GPU, W as often as rotation needs.
struct Operands {
  Arrays inputs;
  std::size_t copies, w_bytes;
  std::unique_ptr<Buffer> x, w, y;

  Operands(Device& device, const Op& op, const Params& request) : inputs(op.arrays->make_inputs(request, 1)) {
    const Array& w_array = inputs.at("w");
    w_bytes = (w_array.bytes.size() + 255) / 256 * 256;
    copies = static_cast<std::size_t>(std::ceil(k_rotation * static_cast<double>(device.facts().l2_bytes) /
                                                static_cast<double>(w_bytes))) +
             1;
    x = std::make_unique<Buffer>(device, inputs.at("x").bytes.size());
    w = std::make_unique<Buffer>(device, copies * w_bytes);
    y = std::make_unique<Buffer>(
        device,
        static_cast<std::size_t>(request.integer("m") * request.integer("n")) * size_of(request.type("out")));
    device.copy_in(x->data(), inputs.at("x").bytes.data(), x->size_bytes());
    for (std::size_t i = 0; i < copies; ++i)
      device.copy_in(w_at(i), w_array.bytes.data(), w_array.bytes.size());
  }

  void* w_at(std::size_t i) const { return static_cast<std::byte*>(w->data()) + i % copies * w_bytes; }
};

Array output_of(Device& device, const Operands& operands, const Params& request) {
  Array y = Array::zeros(request.type("out"), {request.integer("m"), request.integer("n")});
  device.synchronize();
  device.copy_out(y.bytes.data(), operands.y->data(), y.bytes.size());
  return y;
}

void poison(Device& device, const Operands& operands) {
  const std::vector<std::byte> bytes(operands.y->size_bytes(), std::byte{0xff});
  device.copy_in(operands.y->data(), bytes.data(), bytes.size());
}

void need(const CheckResult& result, const std::string& who) {
  if (!result.passed) throw std::runtime_error(fmt::format("{} is wrong: {}", who, result.summary));
}

struct Cell {
  Params request;
  std::string winner;
  double dispatched_us, cublas_us, floor_us, model_us;
  std::vector<std::pair<std::string, double>> others;  // candidates of --sweep
};

Cell measure(Engine& engine, const CudaGraphs& cuda, Cublas& cublas, const ReadRate& rate,
             const Params& request, const Settings& settings) {
  Device& device = engine.current_device();
  const Op& op = engine.op("skinny_gemm");
  const Operands operands(device, op, request);
  const SkinnyGemm typed = skinny_gemm_from(request);
  const auto args = [&](std::size_t i) {
    return SkinnyGemm::Args{.x = operands.x->data(),
                            .w = operands.w_at(i),
                            .y = operands.y->data(),
                            .programmatic = settings.programmatic};
  };

  // The dispatched plan first, then cuBLAS, then the other candidates.
  const TypedPlan<SkinnyGemm> dispatched = engine.plan(typed);
  const Selection& choice = dispatched.state().selection;
  std::vector<TypedPlan<SkinnyGemm>> plans{dispatched};
  std::vector<std::string> names{choice.variant->name + ":" + to_string(choice.params)};
  if (settings.sweep)
    for (const Candidate& candidate : choice.candidates)
      if (candidate.cost_us && *candidate.cost_us < k_sweep_within * *choice.candidates.front().cost_us &&
          candidate.params != choice.params) {
        names.push_back(candidate.variant + ":" + to_string(candidate.params));
        plans.emplace_back(engine.plan(Request{op.name, request}, nullptr, ForcedChoice::parse(names.back())),
                           typed);
      }

  // One order of summation, one set of bits. The fp64 reference takes its time, so each has a thread.
  std::map<std::string, Array> bits;
  std::vector<std::future<void>> checks;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    poison(device, operands);
    plans[i].launch(nullptr, args(i));
    const Array y = output_of(device, operands, request);
    const Selection& selection = plans[i].state().selection;
    std::string order = selection.variant->name;
    for (const std::string& name : selection.variant->order)
      order += fmt::format(" {}", selection.params.integer(name));
    const auto [place, first] = bits.try_emplace(order, y);
    if (first)
      checks.push_back(std::async(std::launch::async, [&, name = names[i], y] {
        need(op.arrays->check(request, operands.inputs, {{"y", y}}), name);
      }));
    if (place->second.bytes != y.bytes)
      throw std::runtime_error(names[i] + " differs from another tile of the same order");
  }
  for (std::future<void>& check : checks) check.get();
  poison(device, operands);
  cublas.gemm(nullptr, typed.m, typed.n, typed.k, operands.x->data(), operands.w_at(0), operands.y->data(),
              typed.out == ElementType::f32);
  need(op.arrays->check(request, operands.inputs, {{"y", output_of(device, operands, request)}}), "cuBLAS");

  const NoCompileScope scope(engine);
  std::vector<Contender> contenders;
  for (const TypedPlan<SkinnyGemm>& plan : plans)
    contenders.push_back({[&](CUstream stream, std::size_t i) { plan.launch(stream, args(i)); }});
  contenders.push_back({[&](CUstream stream, std::size_t i) {
    cublas.gemm(stream, typed.m, typed.n, typed.k, operands.x->data(), operands.w_at(i), operands.y->data(),
                typed.out == ElementType::f32);
  }});
  const std::vector<double> us =
      median_us(cuda, contenders, std::max(operands.copies, k_min_launches), k_rounds);

  Cell cell{request, names[0], us[0], us.back(), rate.us_for(static_cast<double>(typed.n * typed.k * 2)),
            0,       {}};
  for (const Candidate& candidate : choice.candidates)
    if (candidate.params == choice.params) cell.model_us = candidate.cost_us.value_or(0);
  for (std::size_t i = 1; i < plans.size(); ++i) cell.others.emplace_back(names[i], us[i]);
  return cell;
}

void print(const std::vector<Cell>& cells, const Settings& settings) {
  fmt::print("{:>3} {:>6} {:>6} {:>9} {:>9} {:>7} {:>7} {:>7} {:>9}  {}\n", "m", "n", "k", "jitsmith",
             "cuBLAS", "ratio", "floor", "x floor", settings.sweep ? "best" : "model", "choice");
  double log_sum = 0;
  int slower = 0;
  for (const Cell& cell : cells) {
    double extra = cell.model_us;
    std::string note = cell.winner;
    if (settings.sweep) {
      extra = cell.dispatched_us;
      for (const auto& [name, us] : cell.others)
        if (us < extra) extra = us, note = cell.winner + "  best " + name;
    }
    fmt::print("{:>3} {:>6} {:>6} {:>9.2f} {:>9.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>9.2f}  {}\n",
               cell.request.integer("m"), cell.request.integer("n"), cell.request.integer("k"),
               cell.dispatched_us, cell.cublas_us, cell.cublas_us / cell.dispatched_us, cell.floor_us,
               cell.dispatched_us / cell.floor_us, extra, note);
    log_sum += std::log(cell.cublas_us / cell.dispatched_us);
    slower += cell.dispatched_us > cell.cublas_us + std::max(0.02 * cell.cublas_us, 0.05);
  }
  fmt::print("geometric mean {:.2f}x cuBLAS over {} cells; {} cells slower beyond max(2 %, 0.05 us)\n",
             std::exp(log_sum / static_cast<double>(cells.size())), cells.size(), slower);
}

// As each cell is done, so that a run cut short leaves what it has.
class Csv {
 public:
  explicit Csv(const std::string& file) : out_(file) { out_ << "m,n,k,choice,us\n"; }

  void write(const Cell& cell) {
    const auto row = [&](const std::string& name, double us) {
      out_ << fmt::format("{},{},{},\"{}\",{:.4f}\n", cell.request.integer("m"), cell.request.integer("n"),
                          cell.request.integer("k"), name, us);
    };
    row(cell.winner, cell.dispatched_us);
    row("cublas", cell.cublas_us);
    row("floor", cell.floor_us);
    for (const auto& [name, us] : cell.others) row(name, us);
    out_.flush();
  }

 private:
  std::ofstream out_;
};

Params request_of(const Op& op, const RawRequest& raw, const Settings& settings) {
  Params request = op.request.complete(raw.typed(op.request, settings.requests), op.name);
  if (settings.programmatic) request.set("programmatic", true);
  return request;
}

int run(const Settings& settings) {
  Engine engine;
  const CudaGraphs cuda;
  Device& device = engine.current_device();
  Buffer warm_up(device, 256);  // makes the context current, for cuBLAS too
  Cublas cublas(settings.cublas);
  const ReadRate rate = measure_read_rate(engine, cuda);
  fmt::print("{} {}, cuBLAS {}, NVRTC {}; read rate {:.0f} GB/s\n", device.facts().name,
             device.facts().target.arch, cublas.version(), engine.nvrtc().version(), rate.gb_per_s);

  std::vector<Cell> cells;
  const Op& op = engine.op("skinny_gemm");
  std::optional<Csv> csv;
  if (!settings.csv.empty()) csv.emplace(settings.csv);
  for (const RawRequest& raw : RequestFile::read(settings.requests).requests) {
    cells.push_back(measure(engine, cuda, cublas, rate, request_of(op, raw, settings), settings));
    if (csv) csv->write(cells.back());
  }
  print(cells, settings);
  return 0;
}

}  // namespace
}  // namespace jitsmith::bench

int main(int argc, char** argv) {
  jitsmith::bench::Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--sweep")
      settings.sweep = true;
    else if (argument == "--programmatic")
      settings.programmatic = true;
    else if (argument == "--cublas" && i + 1 < argc)
      settings.cublas = argv[++i];
    else if (argument == "--csv" && i + 1 < argc)
      settings.csv = argv[++i];
    else
      settings.requests = argument;
  }
  try {
    if (settings.requests.empty())
      throw jitsmith::InvalidRequest("give a request file, such as bench/skinny_gemm.json");
    return jitsmith::bench::run(settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_skinny_gemm: {}\n", error.what());
    return 1;
  }
}
