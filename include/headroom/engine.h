/// @file
/// Planning, training, evaluating, generating and converting models inside a memory budget, from another program.
///
///     headroom::api::Session session("models/SmolLM2-135M", {{"memory", "6GiB"}});
///     const headroom::api::Plan plan = session.plan({{"max-seq-length", "1024"}});
///     session.train({{"data", "notes.txt"}, {"output-dir", "out"}, {"max-steps", "100"}});
///     session.generate("Once upon a time", {}, [](std::string_view text) { std::cout << text; return true; });
///
/// Options are those of the command line, without the dashes in front: `headroom train --help` and `headroom generate
/// --help` list them with their meanings and defaults. Link headroom::headroom (find_package(headroom)).
///
/// All sizes are in bytes, all times in seconds. Values (Plan, Step, Evaluation ...) belong to the caller: several
/// threads may read the same one.
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

/// The public API. Apart from headroom::version() a program uses nothing else of headroom.
namespace headroom::api {

/// {"memory", "8GiB"}. Underscores count as dashes. An option that the command line takes repeatedly may come several
/// times; of any other the last one counts.
using Options = std::vector<std::pair<std::string, std::string>>;

/// What an Error is about.
enum class ErrorKind {
  usage,         ///< an option, or options that do not go together
  format,        ///< the content of a file
  run,           ///< input or output, or a device, failed
  does_not_fit,  ///< the budget is too small, or larger than the machine; see Refusal
  internal,      ///< a defect of headroom
  stopped        ///< Callbacks::should_stop ended a call that has no result then
};

/// What every call below throws. what() names the value that is wrong and where it was found.
class Error : public std::runtime_error {
 public:
  /// Internal.
  struct Impl;
  /// `message`: what is wrong; `remedy`: what to do about it, or empty.
  Error(ErrorKind kind, const std::string& message, std::string remedy);
  /// What the error is about.
  ErrorKind kind() const noexcept;
  /// What to do about it; may be empty.
  const std::string& remedy() const noexcept;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// A change of the options that needs less memory, for a budget that holds no plan.
struct Change {
  std::string options;             ///< "--max-seq-length 256", or words
  std::string effect;              ///< what else it changes; may be empty
  std::int64_t minimum_bytes = 0;  ///< the least --memory with the change
  bool fits = false;               ///< whether the given budget is enough with the change
};

/// The budget holds no plan. Thrown before anything is written.
class Refusal : public Error {
 public:
  /// Internal.
  struct Impl;
  /// An Error of kind does_not_fit, with its figures in bytes.
  Refusal(const std::string& message, std::string remedy, std::int64_t budget_bytes, std::int64_t minimum_bytes,
          std::vector<Change> changes);
  /// The budget that was given, bytes.
  std::int64_t budget_bytes() const noexcept;
  /// The least --memory that holds a plan, with the other options unchanged; bytes.
  std::int64_t minimum_bytes() const noexcept;
  /// Changes that fit or come near, the mildest first; may be empty.
  const std::vector<Change>& changes() const noexcept;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// A plan of a run: an immutable value, cheap to copy. Members throw only std::bad_alloc. Thread-safe.
class Plan {
 public:
  /// Internal.
  struct Impl;
  /// Plans come from Session::plan() and Callbacks::planned.
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  /// Whether the budget is enough. If not, minimum_bytes() and changes() say what would be, and the other figures are
  /// 0.
  bool feasible() const;
  /// The budget that was given, bytes.
  std::int64_t budget_bytes() const;
  /// The most memory that the kernel charges to the process in any phase of the run (load, train, evaluate, save,
  /// resume), bytes. For a run on a GPU: the most GPU memory.
  std::int64_t peak_bytes() const;
  /// The least --memory that holds a plan, with the other options unchanged; bytes.
  std::int64_t minimum_bytes() const;
  /// The size of the one allocation that holds every tensor, bytes.
  std::int64_t arena_bytes() const;
  /// All other memory of the process, bytes.
  std::int64_t process_bytes() const;
  /// The predicted time of an optimizer step, seconds.
  double step_seconds() const;
  /// Sequences that go through the network at once.
  std::int64_t micro_batch_size() const;
  /// Micro-batches of an optimizer step.
  std::int64_t gradient_accumulation_steps() const;
  /// If the plan is not feasible: changes that fit or come near, the mildest first.
  std::vector<Change> changes() const;
  /// One JSON object; docs/plan_format.md describes it.
  std::string json() const;
  /// What `headroom plan --explain` prints: bytes and seconds per technique, and every plan that no other beats in both
  /// bytes and seconds. Empty for plans of Callbacks::planned.
  std::string explanation() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// What is known after an optimizer step.
struct Step {
  std::int64_t step = 0;            ///< from 1
  std::int64_t total_steps = 0;     ///< of the run
  double loss = 0;                  ///< mean over the target tokens of the step's batch
  double grad_norm = 0;             ///< global L2 norm, before clipping
  double learning_rate = 0;         ///< of this step
  std::int64_t tokens = 0;          ///< of the batch, padding excluded
  double seconds = 0;               ///< how long the step took
  std::int64_t resident_bytes = 0;  ///< resident set of the whole process
};

/// Means over the targets of a data set.
struct Evaluation {
  double loss = 0;                 ///< mean over the targets, in nats
  double perplexity = 0;           ///< exp(loss)
  std::int64_t targets = 0;        ///< tokens or classes that were predicted
  std::optional<double> accuracy;  ///< share of targets, 0 to 1; only for models that predict classes or masked tokens
};

/// Functions that a call calls while it runs. All are optional. They run on the calling thread, between steps. An
/// exception from one of them ends the call without a save and reaches the caller unchanged.
struct Callbacks {
  /// Gets the plan before it is run, or before it is refused as not feasible.
  std::function<void(const Plan&)> planned;
  /// Gets a line of text for people.
  std::function<void(const std::string&)> note;
  /// After each optimizer step.
  std::function<void(const Step&)> step;
  /// After an evaluation: the step, the name of the data set (empty: all), its means.
  std::function<void(std::int64_t step, const std::string& set, const Evaluation&)> evaluated;
  /// After a checkpoint or the model is written: the step, its directory.
  std::function<void(std::int64_t step, const std::string& directory)> saved;
  /// Asked after each step of a training: true saves a checkpoint and ends the run. Asked whenever `progress` is
  /// called: true ends the call, which throws Error (stopped) and leaves no output.
  std::function<bool()> should_stop;
  /// How much of an evaluation, a merge or a quantisation is done: batches, or tensors that are written. First called
  /// with 0 of them done.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

/// How a training ended.
struct Training {
  std::int64_t steps = 0;  ///< of the whole run, including those before a resume
  bool stopped = false;    ///< by should_stop
  std::string output_dir;  ///< holds the model, checkpoints, metrics.jsonl, plan.json and run.json
};

/// Generated text.
struct Generation {
  std::string text;                ///< UTF-8; without the prompt
  std::vector<std::int32_t> ids;   ///< the ids of its tokens
  std::string finish_reason;       ///< "stop", or "length" if the limit of tokens was reached
  std::int64_t prompt_tokens = 0;  ///< tokens of the prompt
  double prompt_seconds = 0;       ///< time for the prompt
  double decode_seconds = 0;       ///< time for the text
};

/// What config.json says of a model.
struct ModelFacts {
  std::string architecture;     ///< "LlamaForCausalLM"
  std::string family;           ///< "llama"
  std::int64_t parameters = 0;  ///< total; tied ones count once
  std::int64_t layers = 0;      ///< decoder or encoder blocks
  std::int64_t vocabulary = 0;  ///< rows of the embedding
  std::int64_t positions = 0;   ///< the longest sequence, tokens
};

/// Reads config.json of a model directory, or a bare config.json. Throws Error (usage, format). Thread-safe.
ModelFacts describe_model(const std::string& model);

/// An answer to a question about plans.
struct Answer {
  std::string json;  ///< one object; docs/questions.md lists the members of each
  std::string text;  ///< for people: a table; for PlanQuestion::curve an HTML page
};

/// Questions that Session::ask() answers (docs/questions.md).
enum class PlanQuestion {
  minimum,  ///< the least memory by how far from exact the run may go; "levels", each with the command that plans it
  ladder,   ///< what each technique saves and costs, alone and together; "rungs"
  curve,    ///< the plan that each budget buys; "points", the least budget first
  measure   ///< the best plans, run for five steps each on this machine; "plans", with measured seconds
};

/// A model and the options that its runs share. The memory that the calling program already holds counts against the
/// budget; memory that it allocates later does not.
///
/// Thread-safe: several threads may plan, train, evaluate and generate at the same time, with one session or several.
/// Between calls it holds the model of its last generate() (see there). Each call stays inside its own budget, and each
/// training needs its own output directory. docs/api.md says what such calls share, and what the process then holds.
class Session {
 public:
  /// Internal.
  struct Impl;
  /// `model`: a directory in Hugging Face layout; for plan() and ask() also a bare config.json. Each call takes those
  /// of `options` that it knows. Throws Error (usage) for an option that no call knows. Reads no file.
  explicit Session(std::string model, Options options = {});

  /// The fastest plan of a training run inside the budget. A plan that is not feasible is not an error. Writes nothing.
  /// Throws Error (usage, format).
  Plan plan(const Options& options = {}) const;
  /// Answers a question about the plans of a training run. Takes seconds; PlanQuestion::measure runs the plans and
  /// takes longer. Writes nothing. Of the callbacks `note` is called. Throws Error (usage, format);
  /// PlanQuestion::measure also Error (does_not_fit, run).
  Answer ask(PlanQuestion question, const Options& options = {}, const Callbacks& callbacks = {}) const;
  /// Plans a run and executes the plan. Writes to the option "output-dir". Throws Refusal before anything is written,
  /// else Error (usage, format, run); complete checkpoints then remain.
  Training train(const Options& options = {}, const Callbacks& callbacks = {}) const;
  /// The loss over the files of option "data". Of the callbacks `planned`, `note`, `progress` and `should_stop` are
  /// called. Throws Refusal or Error (usage, format, run, stopped).
  Evaluation evaluate(const Options& options = {}, const Callbacks& callbacks = {}) const;
  /// `on_text` gets each piece of text, UTF-8 without split characters, and ends the generation by returning false.
  /// With an empty prompt the text begins after the tokenizer's BOS token. Of the callbacks `planned` and `note` are
  /// called. Throws Refusal or Error (usage, format, run).
  ///
  /// On a CPU the model stays planned and loaded for the session's next generate(), inside the session's budget, unless
  /// weights are on a disk for want of room; each text is bitwise that of a fresh session. `planned` is called only if
  /// a call plans and loads: the first does, and a later one whose options about the model or the machine are others,
  /// whose model's files were replaced since, whose tokens the plan has no positions for, or whose prompt the budget
  /// does not hold beside the kept model (docs/api.md has the whole list). Any other call of the session frees what is
  /// kept before it begins; so do release(), an exception while a text is made, and the end of the session's last copy.
  /// A call that runs at the same time as another of the session loads for itself.
  Generation generate(const std::string& prompt, const Options& options = {},
                      const std::function<bool(std::string_view)>& on_text = {}, const Callbacks& callbacks = {}) const;
  /// Frees the model that generate() keeps, if any. A call that is running is not affected.
  void release() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// The measured rates of a machine.
struct MachineProfile {
  std::string name;  ///< "this-machine", "cuda-0"
  std::string path;  ///< the file, for the option "profile" of plans and runs
  std::string json;  ///< its content (docs/profile_format.md)
};

/// Measures this machine, or one of its GPUs, as `headroom profile` does. Takes about 25 s. Writes the profile to the
/// option "output", and always to the file that plans without a named profile read. Other options: "device" (cpu or
/// cuda:N), "disk" (the directory whose disk is measured), "threads". `progress` gets the share that is done, from 0 to
/// 1; `note` gets lines of text for people. Both run on the calling thread; an exception from one of them ends the
/// call, and nothing is written. Throws Error (usage, run). Thread-safe, but other work on the machine falsifies the
/// figures; the profile says where it noticed that.
MachineProfile profile(const Options& options = {}, const std::function<void(double)>& progress = {},
                       const std::function<void(const std::string&)>& note = {});

/// Merges an adapter (LoRA, of headroom or PEFT) into its base model and writes the result to a new directory in
/// Hugging Face layout. `save_dtype`: "float32" or "bfloat16". `memory_bytes`: what the process may take; 0: as many as
/// it needs. Of the callbacks `progress` and `should_stop` are called. Throws Error (usage, format, does_not_fit, run,
/// stopped); a partial output is removed. Thread-safe.
void merge(const std::string& model, const std::string& adapter, const std::string& output_dir,
           const std::string& save_dtype = "float32", std::int64_t memory_bytes = 0, const Callbacks& callbacks = {});

/// Writes a model to a new directory with the matrices of its layers in 4 or 8 bits, in Hugging Face layout. `weights`:
/// "nf4", "nf4-dq" or "fp4" as bitsandbytes writes them, "int8" or "int4" as compressed-tensors does. `memory_bytes`:
/// what the process may take; 0: as many as it needs. Of the callbacks `progress` and `should_stop` are called. Throws
/// Error (usage, format, does_not_fit, run, stopped); a partial output is removed. Thread-safe.
void quantize(const std::string& model, const std::string& output_dir, const std::string& weights = "nf4",
              std::int64_t memory_bytes = 0, const Callbacks& callbacks = {});

}  // namespace headroom::api
