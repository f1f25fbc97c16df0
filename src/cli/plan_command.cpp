#include <iostream>

#include "arguments/shown_command.h"
#include "arguments/train_options.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/plan_diff_command.h"
#include "cli/plan_questions.h"
#include "cli/plan_serve.h"
#include "cli/refuse.h"
#include "cli/run_file_options.h"
#include "cli/terminal.h"
#include "engine/assign_file.h"
#include "engine/budget.h"
#include "engine/device_facts.h"
#include "engine/length_cuts.h"
#include "engine/null_run.h"
#include "engine/plan_training.h"

namespace headroom {
namespace {

struct PlanArguments {
  TrainArguments train;
  PlanQuestions questions;
  bool explain = false;
  std::string pack;
  int64_t capacity = 0;
  std::string text_file;
  bool serve = false;
  ServingArguments serving;  // sizes; the model and the machine are those of `train`
};

// `plan --serve`: takes the server's options that `plan` shares with training from those.
int run_served(const PlanArguments& arguments) {
  ServingArguments serving = arguments.serving;
  const TrainOptions& train = arguments.train.options;
  serving.options.model = train.model.path;
  serving.options.adapter = train.model.adapter;
  serving.options.machine = train.machine;
  serving.options.machine.device = planning_device(train.machine);
  serving.options.techniques = train.techniques;
  if (LoraOptions& lora = serving.options.techniques.lora;
      serving.serving.lora.wanted() || !serving.lora_modules.empty()) {
    if (lora.targets != LoraOptions().targets) serving.serving.lora.targets = lora.targets;
    lora = {};
  }
  serving.tiers = arguments.train.tiers;
  serving.quiet = arguments.train.quiet;
  const std::string note = resolve_serving(serving);
  if (!serving.quiet) print_remark(note);
  return run_plan_serve(serving, arguments.questions.json);
}

int run_pack(const PlanArguments& arguments) {
  const AssignedFile assigned = assign_file(arguments.pack, arguments.capacity);
  const int64_t peak = assigned.assignment.peak, capacity = arguments.capacity;
  if (peak > capacity) {
    print_error(
        fmt::format("{}: the best offsets found need {} bytes, {} above the capacity {}; the largest live sum is {}",
                    arguments.pack, peak, peak - capacity, capacity, assigned.largest_live_sum),
        "give a larger --capacity");
    return 3;
  }
  write_assignment(std::cout, assigned);
  return 0;
}

int run_plan(const PlanArguments& arguments, const CommandWith& command) {
  if (!arguments.pack.empty()) return run_pack(arguments);
  if (arguments.train.options.model.path.empty() && arguments.questions.models.empty())
    throw Error(ErrorKind::usage, "no model", "give --model DIR or --model config.json");
  if (arguments.serve) return run_served(arguments);
  TrainArguments train = arguments.train;
  train.options.machine.device = planning_device(train.options.machine);
  const TrainOptions options = resolve(train);
  PlanQuestions questions = arguments.questions;
  questions.quiet = arguments.train.quiet;
  if (const auto answered = answer_plan_question(questions, options, command)) return *answered;
  const ModelFiles model = open_model(options.model.path);
  const PlannedTraining planned = plan_training(options, model);
  const PlanRequest& request = planned.request;
  const bool json = arguments.questions.json;
  const Plan& plan = planned.search.plan;
  if (!arguments.train.quiet) print_remark(budget_remark(options.machine.device, options.machine.memory));
  if (!arguments.train.quiet) print_remark(request.profile.remark());
  const bool explains = arguments.explain || (!json && plan.feasible);  // which includes the estimates' note
  if (!explains && !arguments.train.quiet) print_remark(estimates_note(planned));
  if (json) std::cout << plan_json(plan);
  if (explains) (json ? std::cerr : std::cout) << explanation(planned);
  if (arguments.explain && !options.data.train.empty()) (json ? std::cerr : std::cout) << explain_cuts(options, model);
  if (!arguments.text_file.empty()) write_output(arguments.text_file, plan_text(plan));
  if (!plan.feasible) return refuse(plan);
  print_remark(null_run_note(options.machine.device, plan));
  return 0;
}

}  // namespace

Command plan_command() {
  return {"plan", "what fits a budget and why, without running it",
          [](CLI::App& app) {
            auto arguments = std::make_shared<PlanArguments>();
            add_train_options(app, arguments->train);
            app.get_option("--model")->required(false);
            std::vector<std::string> names = option_names(app);
            std::erase(names, "quiet");  // concerns this answer, not the command that it shows
            add_plan_questions(app, arguments->questions);
            app.add_flag("--serve", arguments->serve,
                         "what a server would hold within --memory: the bytes of each region, tokens and sequences")
                ->group("Sizes of serving");
            add_serving_sizes(app, arguments->serving);
            app.add_flag("--explain", arguments->explain,
                         "the reasons: bytes and seconds per technique, the frontier of plans; with --data also what "
                         "each --max-seq-length would lose and need");
            scalar(
                app, "--pack", arguments->pack,
                "offset assignment alone, without planning: give each buffer of a CSV (id,lower,upper,size) an offset")
                ->type_name("FILE");
            scalar(app, "--capacity", arguments->capacity, "with --pack: bytes that the buffers must fit in");
            scalar(app, "--emit-text", arguments->text_file,
                   "write the whole plan, every instruction with its offsets, to a file")
                ->type_name("FILE");
            const auto diff = std::make_shared<PlanDiffArguments>();
            const CLI::App* diff_app = add_plan_diff(app, *diff);
            return [arguments, names, &app, diff, diff_app] {
              diff->json |= arguments->questions.json;
              if (diff_app->parsed()) return run_plan_diff(*diff);
              return run_plan(*arguments, [&](const OptionValues& changes) {
                return shown_training(app, names, arguments->train.options, changes);
              });
            };
          },
          expand_run_file};
}

}  // namespace headroom
