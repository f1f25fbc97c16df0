#include "cli/doctor_command.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/doctor_questions.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "doctor/answer/answer.h"
#include "doctor/answer/emit.h"
#include "doctor/output/batch_script.h"
#include "doctor/output/bundle.h"
#include "doctor/output/html.h"
#include "doctor/output/json.h"
#include "doctor/output/screen.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct DoctorArguments {
  doctor::Request request;
  int64_t gpus = 0, capacity = 0, host = 0, micro_batch = 0, sequence = 0;
  bool json = false, verbose = false, probe = false, ask = false;
  std::string emit, html, bundle;
};

constexpr const char* kExamples = R"(
Examples:
  headroom doctor job.log                                        what happened, why, what to do
  python train.py 2>&1 | headroom doctor -
  headroom doctor job.log --config sft.yaml --gpu a100-40gb      the same, with bytes for every remedy
  headroom doctor --config sft.yaml --gpu 24GiB                  will it fit? (exit code 3 if not)
  headroom doctor --config ds.json --model Qwen/Qwen2.5-7B --gpus 4 --gpu h100
  headroom doctor --gpu 4090 -- vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 32768
  headroom doctor --config sft.yaml --gpu t4 --emit fits.yaml    the file, changed so that it fits
  headroom doctor --config sft.yaml --which-gpu
  headroom doctor --probe > probe.py                             measure instead of estimating)";

void write_file(const std::string& path, const std::string& text, const std::vector<std::string>& sources) {
  if (path == "-") {
    std::cout << text;
    return;
  }
  std::error_code status;
  for (const std::string& source : sources)
    if (fs::equivalent(source, path, status))
      throw Error(ErrorKind::usage, fmt::format("{} is one of the inputs", path), "write to another file");
  write_output(path, text);
}

bool is_batch_script(const std::string& path) { return path.ends_with(".sbatch") || path.ends_with(".slurm"); }

// The smallest set as a patch, or as a script for the scheduler.
void emit(const DoctorArguments& arguments, const doctor::Answer& answer, const std::vector<std::string>& sources) {
  if (arguments.emit.empty()) return;
  if (!answer.config)
    throw Error(ErrorKind::usage, "--emit has no configuration to change",
                "give --config FILE, or a command line after --");
  const doctor::Emitted patch = doctor::emit_patch(answer.report.diagnosis, *answer.config);
  if (is_batch_script(arguments.emit)) {
    const std::string command = doctor::launch_command(*answer.config, patch.name, patch.text);
    write_file(arguments.emit, doctor::batch_script(answer.report, command), sources);
  } else {
    write_file(arguments.emit, patch.text, sources);
    if (patch.diff.empty()) print_note("nothing had to be changed");
  }
}

// A configuration that does not fit, without an error to explain: as `plan` answers.
int exit_code(const doctor::Report& report) {
  const bool asked = report.incident.messages.empty() && report.diagnosis.fits.has_value();
  return asked && !*report.diagnosis.fits ? 3 : 0;
}

void show(const DoctorArguments& arguments, const doctor::Report& report) {
  if (arguments.json)
    std::cout << doctor::report_json(report);
  else
    (arguments.emit == "-" ? std::cerr : std::cout)
        << (arguments.verbose ? doctor::details(report) : doctor::screen(report));
}

// Asked for, or at a terminal where an answer would change the first remedy.
bool may_ask(const DoctorArguments& arguments, const doctor::Report& report) {
  const std::vector<std::string>& inputs = arguments.request.inputs;
  const bool read = std::find(inputs.begin(), inputs.end(), "-") != inputs.end();
  if (arguments.ask && read)
    throw Error(ErrorKind::usage, "--ask reads answers from standard input, which is the log here",
                "give the log as a file");
  if (arguments.ask) return true;
  const bool decides = !report.questions.empty() && report.questions.front().first;
  return decides && !read && !arguments.json && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

int run_doctor(DoctorArguments& arguments) {
  if (arguments.probe) {
    std::cout << doctor::probe_script();
    return 0;
  }
  doctor::Request& request = arguments.request;
  const auto positive = [](int64_t value) { return value > 0 ? std::optional(value) : std::nullopt; };
  request.gpus = positive(arguments.gpus);
  request.capacity_bytes = positive(arguments.capacity);
  request.host_bytes = positive(arguments.host);
  request.micro_batch = positive(arguments.micro_batch);
  request.sequence = positive(arguments.sequence);
  const doctor::Intake intake = doctor::read_inputs(request, std::cin);
  doctor::Answer answer = doctor::answer(request, intake);
  bool shown = false;
  if (may_ask(arguments, answer.report)) {
    shown = !arguments.json;
    if (shown) show(arguments, answer.report);
    shown = !ask_for_facts(request, intake, answer, arguments.ask, std::cin) && shown;
  }
  std::vector<std::string> sources = request.inputs;
  sources.insert(sources.end(), request.configs.begin(), request.configs.end());
  emit(arguments, answer, sources);
  const doctor::Report& report = answer.report;
  if (!arguments.html.empty()) write_file(arguments.html, doctor::report_html(report), sources);
  if (!arguments.bundle.empty()) write_file(arguments.bundle, doctor::report_bundle(report), sources);
  if (!shown) show(arguments, report);
  return exit_code(report);
}

void add_job_options(CLI::App& app, DoctorArguments& arguments) {
  app.add_option("--config", arguments.request.configs,
                 "configuration, script, notebook or job script of another system; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  scalar(app, "--model", arguments.request.model, "a model's config.json, its folder, or a published name")
      ->type_name("NAME");
  scalar(app, "--params", arguments.request.parameters, "the number of parameters alone: 7B (gives a wider range)")
      ->type_name("SIZE");
  scalar(app, "--gpu", arguments.request.gpu, "the GPU: a100-40gb, 4090, t4, ..., or its memory: 24GiB")
      ->type_name("NAME");
  scalar(app, "--gpus", arguments.gpus, "number of GPUs");
  memory_option(app, "--capacity", arguments.capacity, "device memory that the job may use");
  memory_option(app, "--host-memory", arguments.host, "host memory that the job may use");
  scalar(app, "--micro-batch-size", arguments.micro_batch, "micro-batch size, in place of the configuration's");
  scalar(app, "--max-seq-length", arguments.sequence, "sequence length, in place of the configuration's or the data's");
  scalar(app, "--torch", arguments.request.torch, "PyTorch's version: 2.6")->type_name("VERSION");
  scalar(app, "--row", arguments.request.row, "row to read in a JSONL of server commands");
  app.add_option("--command-word", arguments.request.command)->group("")->allow_extra_args(false);
}

// What stands behind "--" is another system's command line.
ExpandedArguments gather_command(std::vector<std::string> arguments, const CLI::App&) {
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  ExpandedArguments out{{arguments.begin(), separator}, {}};
  for (auto at = separator; at != arguments.end(); ++at)
    if (at != separator) out.arguments.push_back("--command-word=" + *at);
  return out;
}

}  // namespace

Command make_doctor_command(doctor::MinimumPlanner minimum) {
  return {
      "doctor", "explain an out-of-memory error, or say whether another system's job fits",
      [minimum](CLI::App& app) {
        auto arguments = std::make_shared<DoctorArguments>();
        arguments->request.minimum = minimum;
        app.add_option("inputs", arguments->request.inputs, "logs, configurations, probe output; - is stdin")
            ->type_name("FILE");
        add_job_options(app, *arguments);
        app.add_flag("--which-gpu", arguments->request.which_gpu, "rank the GPUs that the job would fit on");
        app.add_flag("--ask", arguments->ask,
                     "ask for the facts that decide (three questions at most), then answer again");
        app.add_flag("--probe", arguments->probe, "print a script that measures two batch sizes");
        app.add_flag("--verbose", arguments->verbose, "every cause, remedy, caveat, term and key");
        app.add_flag("--json", arguments->json, "the answer as JSON");
        scalar(app, "--html", arguments->html, "write a page with bars of what fills the memory")->type_name("FILE");
        scalar(app, "--emit", arguments->emit,
               "write the configuration or command line with the smallest fitting set applied; *.sbatch: a job "
               "script; -: to stdout")
            ->type_name("FILE");
        scalar(app, "--bundle", arguments->bundle, "write one redacted page for a support desk")->type_name("FILE");
        app.footer(kExamples);
        return [arguments] { return run_doctor(*arguments); };
      },
      gather_command};
}

}  // namespace headroom
