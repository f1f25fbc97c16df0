/// @file
/// Planning, training, evaluating and generating inside a memory budget, from another program.
///
///     headroom::api::Session session("models/SmolLM2-135M", {{"memory", "6GiB"}});
///     const headroom::api::Plan plan = session.plan({{"max-seq-length", "1024"}});
///     session.train({{"data", "notes.txt"}, {"output-dir", "out"}, {"max-steps", "100"}});
///     session.generate("Once upon a time", {}, [](std::string_view text) { std::cout << text; return true; });
///
/// Options are those of the command line, without the dashes in front: `headroom train --help` and `headroom generate
/// --help` list them with their meanings and defaults. Link headroom::headroom (find_package(headroom)).
///
/// All sizes are in bytes, all times in seconds. Values (Plan, Step, Evaluation ...) are the caller's own: threads may
/// read one at the same time, as any value.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The public API: everything that a program may use of headroom but headroom::version().
namespace headroom::api {

/// {"memory", "8GiB"}. Underscores count as dashes; options that the command line takes repeatedly may come several
/// times, of others the last counts.
using Options = std::vector<std::pair<std::string, std::string>>;

/// What an Error is about.
enum class ErrorKind {
  usage,         ///< an option, or options that do not go together
  format,        ///< what a file holds
  run,           ///< the machine: I/O, a device
  does_not_fit,  ///< a budget, see Refusal
  internal       ///< a defect of headroom
};

/// What every call below throws. what() names the value and the place.
class Error : public std::runtime_error {
 public:
  /// `message`: what is wrong; `remedy`: what to do about it, or empty.
  Error(ErrorKind kind, const std::string& message, std::string remedy)
      : std::runtime_error(message), kind_(kind), remedy_(std::move(remedy)) {}
  /// What it is about.
  ErrorKind kind() const { return kind_; }
  /// What to do about it; may be empty.
  const std::string& remedy() const { return remedy_; }

 private:
  ErrorKind kind_;
  std::string remedy_;
};

/// Something else to ask for where a budget holds no plan.
struct Change {
  std::string options;             ///< "--max-seq-length 256", or words
  std::string effect;              ///< what it changes beside the memory; may be empty
  std::int64_t minimum_bytes = 0;  ///< the least --memory with it
  bool fits = false;               ///< whether the budget holds it
};

/// The budget holds no plan. Thrown before anything is written.
class Refusal : public Error {
 public:
  /// An Error of kind does_not_fit, with its figures in bytes.
  Refusal(const std::string& message, std::string remedy, std::int64_t budget_bytes, std::int64_t minimum_bytes,
          std::vector<Change> changes)
      : Error(ErrorKind::does_not_fit, message, std::move(remedy)),
        budget_bytes_(budget_bytes),
        minimum_bytes_(minimum_bytes),
        changes_(std::move(changes)) {}
  /// What was given, bytes.
  std::int64_t budget_bytes() const { return budget_bytes_; }
  /// The least --memory with a plan, the other options as they are; bytes.
  std::int64_t minimum_bytes() const { return minimum_bytes_; }
  /// What else would fit or comes near, the mildest first; may be empty.
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::int64_t budget_bytes_, minimum_bytes_;
  std::vector<Change> changes_;
};

/// A plan of a run. A value: cheap to copy, never changes. No member throws but for lack of memory; thread-safe.
class Plan {
 public:
  /// The engine's own.
  struct Impl;
  /// Plans come from Session::plan() and Callbacks::planned.
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  /// Whether the budget holds it. If not, minimum_bytes() and changes() say what would; the other figures are 0.
  bool feasible() const;
  /// What was given, bytes.
  std::int64_t budget_bytes() const;
  /// The most that the process is charged in any phase of the run, bytes: load, train, evaluate, save, resume. On a
  /// GPU, there.
  std::int64_t peak_bytes() const;
  /// The least --memory with a plan, the other options as they are; bytes.
  std::int64_t minimum_bytes() const;
  /// The one block that holds every tensor, bytes.
  std::int64_t arena_bytes() const;
  /// Everything else of the process, bytes.
  std::int64_t process_bytes() const;
  /// Predicted, of an optimizer step, seconds.
  double step_seconds() const;
  /// Sequences that are computed at once.
  std::int64_t micro_batch_size() const;
  /// Micro-batches of an optimizer step.
  std::int64_t gradient_accumulation_steps() const;
  /// Where it is not feasible: what else would fit or comes near, the mildest first.
  std::vector<Change> changes() const;
  /// One JSON object; docs/plan_format.md describes it.
  std::string json() const;
  /// What `headroom plan --explain` prints: bytes and seconds per technique, and all plans that none beats in both.
  /// Empty for plans of Callbacks::planned.
  std::string explanation() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// After an optimizer step.
struct Step {
  std::int64_t step = 0;            ///< from 1
  std::int64_t total_steps = 0;     ///< of the run
  double loss = 0;                  ///< mean over the target tokens of the step's batch
  double grad_norm = 0;             ///< global L2 norm, before clipping
  double learning_rate = 0;         ///< of this step
  std::int64_t tokens = 0;          ///< of the batch, padding excluded
  double seconds = 0;               ///< that the step took
  std::int64_t resident_bytes = 0;  ///< of this process, with all that runs in it
};

/// Means over the targets of a data set.
struct Evaluation {
  double loss = 0;                 ///< mean over the targets, in nats
  double perplexity = 0;           ///< exp(loss)
  std::int64_t targets = 0;        ///< tokens or classes that were predicted
  std::optional<double> accuracy;  ///< share of targets; of models that predict classes or masked tokens
};

/// What a call tells on its way. All optional. Called on the thread that called, between steps; what they throw ends
/// the call as it is, without a save.
struct Callbacks {
  /// Before a plan is run, or refused where it is not feasible; of an evaluation when it has ended.
  std::function<void(const Plan&)> planned;
  /// A line for people.
  std::function<void(const std::string&)> note;
  /// After each optimizer step.
  std::function<void(const Step&)> step;
  /// After an evaluation: the step, the name of the data set (empty: all), its means.
  std::function<void(std::int64_t step, const std::string& set, const Evaluation&)> evaluated;
  /// After a checkpoint or the model is written: the step, its directory.
  std::function<void(std::int64_t step, const std::string& directory)> saved;
  /// Asked after each step: true saves a checkpoint and ends the run.
  std::function<bool()> should_stop;
};

/// How a training ended.
struct Training {
  std::int64_t steps = 0;  ///< of the whole run, those before a resume too
  bool stopped = false;    ///< by should_stop
  std::string output_dir;  ///< model, checkpoints, metrics.jsonl, plan.json, run.json
};

/// Text that was made.
struct Generation {
  std::string text;                ///< UTF-8; without the prompt
  std::vector<std::int32_t> ids;   ///< its tokens
  std::string finish_reason;       ///< "stop", or "length"
  std::int64_t prompt_tokens = 0;  ///< of the prompt
  double prompt_seconds = 0;       ///< that the prompt took
  double decode_seconds = 0;       ///< that the text took
};

/// What config.json says of a model.
struct ModelFacts {
  std::string architecture;     ///< "LlamaForCausalLM"
  std::string family;           ///< "llama"
  std::int64_t parameters = 0;  ///< in all; tied ones once
  std::int64_t layers = 0;      ///< decoder or encoder blocks
  std::int64_t vocabulary = 0;  ///< rows of the embedding
  std::int64_t positions = 0;   ///< the longest sequence, tokens
};

/// Reads config.json of a model directory, or a bare config.json. Throws Error (usage, format). Thread-safe.
ModelFacts describe_model(const std::string& model);

/// A model and the options that its runs share. What the calling program holds already is booked in the budget as a
/// part of the process; what it allocates later is not.
///
/// Thread-safe: several threads may plan, train, evaluate and generate at the same time, with one session or several,
/// each call inside its own budget; trainings each need an output directory of their own. docs/api.md says what such
/// calls share, and what the process then holds.
class Session {
 public:
  /// `model`: a directory in Hugging Face layout, for plan() also a bare config.json. Of the options each call takes
  /// those that it knows. Throws Error (usage) for one that no call knows. Reads no file.
  explicit Session(std::string model, Options options = {});

  /// The fastest plan of a training run inside the budget; one that is not feasible is not an error. Writes nothing.
  /// Throws Error (usage, format).
  Plan plan(const Options& options = {}) const;
  /// Plans, and does exactly that; writes to the option "output-dir". Throws Refusal before anything is written, else
  /// Error (usage, format, run); checkpoints that are complete then stand.
  Training train(const Options& options = {}, const Callbacks& callbacks = {}) const;
  /// Over the files of option "data". Of the callbacks `planned` and `note` are called. Throws Refusal or Error (usage,
  /// format, run).
  Evaluation evaluate(const Options& options = {}, const Callbacks& callbacks = {}) const;
  /// `on_text` gets each piece of text, UTF-8 of whole characters, and ends the generation by returning false. An empty
  /// prompt begins with the tokenizer's BOS. Of the callbacks `note` is called. Throws Refusal or Error (usage, format,
  /// run).
  Generation generate(const std::string& prompt, const Options& options = {},
                      const std::function<bool(std::string_view)>& on_text = {}, const Callbacks& callbacks = {}) const;

 private:
  std::string model_;
  Options options_;
};

/// What was measured of a machine.
struct MachineProfile {
  std::string name;  ///< "this-machine", "cuda-0"
  std::string path;  ///< of the file, for the option "profile" of plans and runs
  std::string json;  ///< what is in it (docs/profile_format.md)
};

/// Measures this machine, or a GPU of it, as `headroom profile` does, in about 25 s, and writes the profile: to the
/// option "output", and in any case where plans look that name none. Other options: "device" (cpu or cuda:N), "disk"
/// (the directory whose disk is measured), "threads". `progress` gets the share that is done, from 0 to 1; `note` a
/// line for people. Both are called on the calling thread; what they throw ends the call, and nothing is written.
/// Throws Error (usage, run). Thread-safe, but what else runs falsifies the figures; the profile says where it noticed.
MachineProfile profile(const Options& options = {}, const std::function<void(double)>& progress = {},
                       const std::function<void(const std::string&)>& note = {});

/// An adapter (LoRA, of headroom or PEFT) merged into its base model, as a new directory in Hugging Face layout.
/// `save_dtype`: "float32" or "bfloat16". Throws Error (usage, format, run); a partial output is removed. Thread-safe.
void merge(const std::string& model, const std::string& adapter, const std::string& output_dir,
           const std::string& save_dtype = "float32");

}  // namespace headroom::api
