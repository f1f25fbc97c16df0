#include "report/run_files.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "report/json_file.h"

namespace headroom::report {
namespace {

namespace fs = std::filesystem;

constexpr size_t kManyRows = 4096;

int32_t small(const Field& field) {
  const int64_t value = field.whole();
  return static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX));
}

std::vector<std::pair<std::string, int64_t>> members(const Field& object, const std::vector<const char*>& names) {
  std::vector<std::pair<std::string, int64_t>> out;
  for (const char* name : names) out.emplace_back(name, object.at(name).bytes());
  return out;
}

MemoryClass class_named(const Field& field) {
  const std::string name = field.text();
  for (size_t i = 0; i < kMemoryClasses; ++i)
    if (memory_class_name(static_cast<MemoryClass>(i)) == name) return static_cast<MemoryClass>(i);
  return MemoryClass::data;
}

Stage stage_named(const std::string& name) {
  for (const Stage stage : {Stage::forward, Stage::backward, Stage::recompute, Stage::update, Stage::transfer})
    if (stage_name(stage) == name) return stage;
  return Stage::forward;
}

ClassBytes class_bytes(const Field& row, size_t first) {
  ClassBytes bytes{};
  for (size_t i = 0; i < kMemoryClasses; ++i) bytes[i] = row.at(first + i).bytes();
  return bytes;
}

void read_peak(const Field& peak, StepMemory& step) {
  step.peak_instruction = small(peak.at("instruction"));
  step.peak_op = peak.at("op").text();
  step.peak_block = small(peak.at("layer"));
  step.peak_stage = stage_named(peak.at("stage").text());
  step.peak = class_bytes(peak.at("bytes"), 0);
}

void read_tensors(const Field& root, StepMemory& step) {
  const Field groups = root.at("groups"), tensors = root.at("tensors"), layers = root.at("layers");
  for (size_t i = 0; i < groups.size(kManyRows); ++i) {
    const Field g = groups.at(i);
    step.groups.push_back({g.at("name").text(), class_named(g.at("class")), g.at("count").bytes(),
                           g.at("bytes").bytes(), small(g.at("first_layer")), small(g.at("last_layer"))});
  }
  for (size_t i = 0; i < tensors.size(kManyRows); ++i) {
    const Field t = tensors.at(i);
    step.tensors.push_back({t.at("name").text(), class_named(t.at("class")), small(t.at("layer")),
                            t.at("offset").bytes(), t.at("bytes").bytes(), small(t.at("made")), small(t.at("freed")),
                            false});
  }
  for (size_t i = 0; i < layers.size(kManyRows); ++i)
    step.layers.push_back({small(layers.at(i).at(size_t{0})), class_bytes(layers.at(i), 1)});
}

std::vector<int64_t> checkpoint_steps(const fs::path& directory) {
  std::vector<int64_t> steps;
  std::error_code status;
  for (fs::directory_iterator at(directory, status), end; !status && at != end; at.increment(status)) {
    const std::string name = at->path().filename().string();
    int64_t step = 0;
    if (!name.starts_with("checkpoint-")) continue;
    const auto [stop, fault] = std::from_chars(name.data() + 11, name.data() + name.size(), step);
    std::error_code ignored;
    if (fault == std::errc() && stop == name.data() + name.size() && fs::exists(at->path() / "state.json", ignored))
      steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

namespace {

std::vector<TensorGroup> tensors_at_peak(const Field& root) {
  std::vector<TensorGroup> out;
  if (!root.has("tensors")) return out;
  const Field tensors = root.at("tensors");
  for (size_t i = 0; i < tensors.size(kManyRows); ++i) {
    const Field t = tensors.at(i);
    TensorGroup& group = out.emplace_back();
    group.name = t.at("name").text(), group.kind = class_named(t.at("class"));
    group.count = t.at("count").bytes(), group.bytes = t.at("bytes").bytes();
  }
  return out;
}

// Peaks of the tiers below the one that the budget bounds, which on the CPU is the host.
std::vector<std::pair<std::string, int64_t>> peaks_below(const Field& root) {
  std::vector<std::pair<std::string, int64_t>> out;
  if (!root.has("tiers")) return out;
  const Field tiers = root.at("tiers");
  const bool on_device = tiers.at("device").at("budget_bytes").bytes() > 0;
  for (const char* name : {"host", "disk"})
    if (const int64_t peak = tiers.at(name).at("peak_bytes").bytes();
        peak > 0 && (on_device || name != std::string("host")))
      out.emplace_back(name, peak);
  return out;
}

PlanFile plan_of(const Field& root) {
  PlanFile plan;
  plan.feasible = root.at("feasible").flag();
  plan.model = root.at("model").text();
  plan.profile = root.at("profile").text();
  plan.precision = root.at("precision").text();
  plan.budget = root.at("budget_bytes").bytes(), plan.peak = root.at("peak_bytes").bytes();
  plan.minimum = root.at("minimum_bytes").bytes(), plan.arena = root.at("arena_bytes").bytes();
  plan.process = root.at("process_bytes").bytes(), plan.parameters = root.at("parameters").bytes();
  plan.micro_batch = root.at("micro_batch_size").bytes(), plan.seq_length = root.at("max_seq_length").bytes();
  plan.accumulation = root.at("gradient_accumulation_steps").bytes(), plan.threads = root.at("threads").bytes();
  plan.step_seconds = root.at("predicted_step_seconds").number();
  plan.classes = members(root.at("breakdown"),
                         {"weights", "gradients", "optimizer", "activations", "workspace", "data", "alignment"});
  plan.parts = members(root.at("process"), {"code", "tokenizer", "data", "kernels", "planner", "page_tables"});
  if (const Field process = root.at("process"); process.has("copies"))
    plan.parts.emplace_back("copies", process.at("copies").bytes());
  const Field phases = root.at("phases"), techniques = root.at("techniques");
  for (size_t i = 0; i < phases.size(kManyRows); ++i)
    plan.phases.emplace_back(phases.at(i).at("name").text(), phases.at(i).at("peak_bytes").bytes());
  for (size_t i = 0; i < techniques.size(kManyRows); ++i) {
    const Field t = techniques.at(i);
    plan.techniques.push_back({t.at("name").text(), t.at("kind").text(), t.at("value").text(),
                               t.at("saves_bytes").whole(), t.at("costs_seconds").number(), t.at("why").text()});
  }
  plan.below = peaks_below(root);
  plan.tensors = tensors_at_peak(root);
  return plan;
}

}  // namespace

PlanFile read_plan_file(const fs::path& file) {
  const Json json = read_file(file);
  return plan_of(Field(json, file.string()));
}

std::optional<PlanFile> read_plan(const fs::path& directory) {
  const auto json = read_if_there(directory / "plan.json");
  if (!json) return std::nullopt;
  return plan_of(Field(*json, (directory / "plan.json").string()));
}

std::string EarlyEnd::reason() const {
  return fmt::format("no better evaluation loss in {} evaluation{}{}", evaluations, evaluations == 1 ? "" : "s",
                     best_step > 0 ? fmt::format(", the best was {:.4f} at step {}", best_loss, best_step) : "");
}

std::optional<EndFile> read_end(const fs::path& directory) {
  const auto json = read_if_there(directory / "run.json");
  if (!json) return std::nullopt;
  const Field root(*json, (directory / "run.json").string());
  EndFile end;
  end.arena_planned = root.at("arena_planned_bytes").bytes();
  end.arena_measured = root.at("arena_measured_bytes").bytes();
  end.peak_resident = root.at("process_peak_rss_bytes").bytes(), end.budget = root.at("budget_bytes").bytes();
  if (!root.has("started_unix_ms")) return end;
  end.started_unix_ms = root.at("started_unix_ms").bytes(), end.steps = root.at("steps").bytes();
  end.total_steps = root.at("total_steps").bytes(), end.stopped_by = root.at("stopped_by").bytes();
  if (root.has("early_stop")) {
    const Field early = root.at("early_stop");
    end.early = {early.at("evaluations").bytes(), early.at("best_step").bytes(), early.at("best_eval_loss").number()};
  }
  return end;
}

std::optional<ProcessFile> read_process(const fs::path& directory) {
  const auto json = read_if_there(directory / "process.json");
  if (!json) return std::nullopt;
  const Field root(*json, (directory / "process.json").string());
  return ProcessFile{root.at("pid").bytes(),        root.at("start_ticks").bytes(), root.at("started_unix_ms").bytes(),
                     root.at("first_step").bytes(), root.at("total_steps").bytes(), root.at("host").text()};
}

std::optional<MemoryFile> read_memory(const fs::path& directory) {
  const auto json = read_if_there(directory / "memory.json");
  if (!json) return std::nullopt;
  const Field root(*json, (directory / "memory.json").string());
  MemoryFile memory;
  memory.step.program = root.at("program").text();
  memory.step.instructions = small(root.at("instructions"));
  const Field points = root.at("points"), frontier = root.at("frontier");
  for (size_t i = 0; i < points.size(kManyRows); ++i) {
    const Field row = points.at(i);
    memory.step.points.push_back({small(row.at(size_t{0})), small(row.at(size_t{2})),
                                  stage_named(row.at(size_t{1}).text()), class_bytes(row, 3)});
  }
  read_peak(root.at("peak"), memory.step);
  read_tensors(root, memory.step);
  for (size_t i = 0; i < frontier.size(kManyRows); ++i) {
    const Field point = frontier.at(i);
    memory.frontier.push_back({point.at("peak_bytes").bytes(), point.at("packed").flag(),
                               point.at("step_seconds").number(), point.at("setting").text()});
  }
  return memory;
}

std::optional<LengthsFile> read_lengths(const fs::path& directory) {
  const auto json = read_if_there(directory / "data.json");
  if (!json) return std::nullopt;
  const Field root(*json, (directory / "data.json").string());
  LengthsFile lengths{root.at("rows").bytes(), root.at("tokens").bytes(), {}, {}};
  const Field bins = root.at("histogram"), cuts = root.at("cuts");
  for (size_t i = 0; i < bins.size(64); ++i) {
    const Field bin = bins.at(i);
    lengths.bins.push_back(
        {bin.has("up_to") ? bin.at("up_to").bytes() : 0, bin.at("rows").bytes(), bin.at("tokens").bytes()});
  }
  for (size_t i = 0; i < cuts.size(64); ++i) {
    const Field cut = cuts.at(i);
    lengths.cuts.push_back({cut.at("length").bytes(), cut.at("cut_rows").bytes(), cut.at("lost_tokens").bytes()});
  }
  return lengths;
}

std::optional<MeasuredFile> read_measured(const fs::path& directory) {
  const auto json = read_if_there(directory / "measured.json");
  if (!json) return std::nullopt;
  const Field root(*json, (directory / "measured.json").string());
  MeasuredFile measured;
  measured.instructions = small(root.at("instructions"));
  const Field points = root.at("points");
  for (size_t i = 0; i < points.size(kManyRows); ++i) {
    measured.resident.push_back(points.at(i).at(size_t{1}).bytes());
    measured.seconds.push_back(std::max(0.0, points.at(i).at(size_t{2}).number()));
  }
  return measured;
}

Run read_run(const fs::path& directory) {
  Run run;
  run.directory = directory;
  const auto plan = read_plan(directory);
  if (!plan)
    throw Error(ErrorKind::usage, fmt::format("{} holds no run: there is no plan.json", directory.string()),
                "give the --output-dir of a run that has begun");
  run.plan = *plan;
  run.end = read_end(directory);
  run.process = read_process(directory);
  // run.json of an earlier start does not describe a run that was resumed and is still running.
  if (run.end && run.process && run.end->started_unix_ms != run.process->started_unix_ms) run.end.reset();
  run.memory = read_memory(directory);
  run.measured = read_measured(directory);
  run.lengths = read_lengths(directory);
  if (run.measured && (!run.memory || run.measured->instructions != run.memory->step.instructions ||
                       run.measured->resident.size() != run.memory->step.points.size()))
    run.measured.reset();
  MetricsReader metrics(directory / "metrics.jsonl");
  metrics.poll();
  run.metrics = metrics.metrics();
  run.checkpoints = checkpoint_steps(directory);
  return run;
}

}  // namespace headroom::report
