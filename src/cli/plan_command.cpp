#include <iostream>

#include "arguments/train_options.h"
#include "base/error.h"
#include "cli/output_file.h"
#include "cli/plan_data.h"
#include "cli/refuse.h"
#include "cli/run_file_options.h"
#include "cli/terminal.h"
#include "device/device.h"
#include "engine/plan_training.h"
#include "memory/lower_bound.h"
#include "memory/pack.h"
#include "memory/packing_csv.h"
#include "planner/estimates.h"
#include "planner/explain.h"
#include "runtime/executor.h"
#include "train/budget.h"
#include "train/setup.h"

namespace headroom {
namespace {

struct PlanArguments {
  TrainArguments train;
  bool json = false;
  bool explain = false;
  bool null_run = false;
  std::string pack;
  int64_t capacity = 0;
  std::string text_file;
};

int run_pack(const PlanArguments& arguments) {
  if (arguments.capacity <= 0) throw Error(ErrorKind::usage, "--pack needs a capacity in bytes", "give --capacity N");
  const std::vector<Buffer> buffers = read_packing_csv(arguments.pack);
  PackOptions options;
  options.alignment = 1;
  options.capacity = arguments.capacity;
  options.exact_nodes = 4'000'000;
  const Packing packing = pack(buffers, options);
  if (packing.peak > arguments.capacity) {
    print_error(
        fmt::format("{}: the best packing found needs {} bytes, {} above the capacity {}; the largest live sum is {}",
                    arguments.pack, packing.peak, packing.peak - arguments.capacity, arguments.capacity,
                    lower_bound(buffers, 1)),
        "give a larger --capacity");
    return 3;
  }
  write_packing_csv(std::cout, buffers, &packing);
  return 0;
}

// Executes every program of the plan on the null device.
void check_on_null(const Plan& plan) {
  const std::unique_ptr<Device> device = make_null_device(plan.facts);
  Executor executor(plan, *device, nullptr);
  const Trips trips[] = {{"micro_batches", 2}, {"eval_batches", 2}};
  for (const PlanProgram& program : plan.programs) executor.run(program.name, trips);
  std::string note = fmt::format("null device: {} programs ran, highest access at {} of {} bytes", plan.programs.size(),
                                 executor.arena_high_water(), plan.arena_bytes);
  for (const Tier tier : kLowerTiers)
    if (const int64_t bytes = plan.below(tier).arena_bytes; bytes > 0)
      note += fmt::format(", of the {} at {} of {}", tier_name(tier), executor.arena_high_water(tier), bytes);
  print_note(note);
}

// A plan for a profile of another device needs none: the null device checks it.
TrainArguments for_profile(TrainArguments arguments) {
  TrainOptions& options = arguments.options;
  if (device_kind(options.device) == DeviceKind::cpu && !options.profile.empty() &&
      !load_profile(options.profile).facts.is_cpu())
    options.device = "null";
  return arguments;
}

int run_plan(const PlanArguments& arguments) {
  if (!arguments.pack.empty()) return run_pack(arguments);
  if (arguments.train.options.model.empty())
    throw Error(ErrorKind::usage, "no model", "give --model DIR or --model config.json");
  const TrainOptions options = resolve(for_profile(arguments.train));
  const PlannedTraining planned = plan_training(options);
  const PlanRequest& request = planned.request;
  const Plan& plan = planned.search.plan;
  if (device_kind(options.device) == DeviceKind::cpu && options.memory > available_memory() && !arguments.train.quiet)
    print_note(fmt::format("note: the budget is above what this machine can give now ({} bytes)", available_memory()));
  if (const std::string remark = request.profile.remark(); !remark.empty() && !arguments.train.quiet)
    print_note(remark);
  const bool explains = arguments.explain || (!arguments.json && plan.feasible);  // and says it there
  if (const std::string unmeasured = estimates(request.profile);
      !unmeasured.empty() && !explains && !arguments.train.quiet)
    print_note("note: " + unmeasured);
  if (arguments.json) std::cout << plan_json(plan);
  if (explains) (arguments.json ? std::cerr : std::cout) << explain(request, planned.search);
  if (arguments.explain && !options.data.empty())
    (arguments.json ? std::cerr : std::cout) << explain_cuts(options, planned.model);
  if (!arguments.text_file.empty()) write_output(arguments.text_file, plan_text(plan));
  if (!plan.feasible) return refuse(plan);
  if (device_kind(options.device) == DeviceKind::null) check_on_null(plan);
  return 0;
}

}  // namespace

Command plan_command() {
  return {"plan", "what fits a budget and why, without running it",
          [](CLI::App& app) {
            auto arguments = std::make_shared<PlanArguments>();
            add_train_options(app, arguments->train);
            app.get_option("--model")->required(false);
            app.add_flag("--json", arguments->json, "the plan as JSON on stdout");
            app.add_flag(
                "--explain", arguments->explain,
                "why and why not: bytes and seconds per technique, the frontier of plans; with --data also what "
                "each --max-seq-length would lose and need");
            scalar(app, "--pack", arguments->pack, "pack the buffers of a CSV (id,lower,upper,size) instead")
                ->type_name("FILE");
            scalar(app, "--capacity", arguments->capacity, "bytes to pack into");
            scalar(app, "--emit-text", arguments->text_file,
                   "write the whole plan, every instruction with its offsets, to a file")
                ->type_name("FILE");
            return [arguments] { return run_plan(*arguments); };
          },
          expand_run_file};
}

}  // namespace headroom
