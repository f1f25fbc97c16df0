// Planning, training, evaluating and generating inside a memory budget, from another program.
//
//   headroom::api::Session session("models/SmolLM2-135M", {{"memory", "6GiB"}});
//   const headroom::api::Plan plan = session.plan({{"max-seq-length", "1024"}});
//   session.train({{"data", "notes.txt"}, {"output-dir", "out"}, {"max-steps", "100"}});
//   session.generate("Once upon a time", {}, [](std::string_view text) { std::cout << text; return true; });
//
// Options are those of the command line, without the dashes in front: `headroom train --help` and `headroom generate
// --help` list them with their meanings and defaults. Link headroom::headroom (find_package(headroom)).
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

namespace headroom::api {

// {"memory", "8GiB"}. Underscores count as dashes; options that the command line takes repeatedly may come several
// times, of others the last counts.
using Options = std::vector<std::pair<std::string, std::string>>;

enum class ErrorKind {
  usage,         // an option, or options that do not go together
  format,        // what a file holds
  run,           // the machine: I/O, a device
  does_not_fit,  // a budget, see Refusal
  internal       // a defect of headroom
};

// What every call below throws. what() names the value and the place.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string remedy)
      : std::runtime_error(message), kind_(kind), remedy_(std::move(remedy)) {}
  ErrorKind kind() const { return kind_; }
  // What to do about it; may be empty.
  const std::string& remedy() const { return remedy_; }

 private:
  ErrorKind kind_;
  std::string remedy_;
};

// Something else to ask for where a budget holds no plan.
struct Change {
  std::string options;             // "--max-seq-length 256", or words
  std::string effect;              // what it changes beside the memory; may be empty
  std::int64_t minimum_bytes = 0;  // the least --memory with it
  bool fits = false;               // the budget
};

// The budget holds no plan. Thrown before anything is written.
class Refusal : public Error {
 public:
  Refusal(const std::string& message, std::string remedy, std::int64_t budget_bytes, std::int64_t minimum_bytes,
          std::vector<Change> changes)
      : Error(ErrorKind::does_not_fit, message, std::move(remedy)),
        budget_bytes_(budget_bytes),
        minimum_bytes_(minimum_bytes),
        changes_(std::move(changes)) {}
  std::int64_t budget_bytes() const { return budget_bytes_; }
  // The least --memory with a plan, the other options as they are.
  std::int64_t minimum_bytes() const { return minimum_bytes_; }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::int64_t budget_bytes_, minimum_bytes_;
  std::vector<Change> changes_;
};

// A plan of a run. A value: cheap to copy, never changes.
class Plan {
 public:
  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  // Whether the budget holds it. If not, minimum_bytes() and changes() say what would; the other figures are 0.
  bool feasible() const;
  std::int64_t budget_bytes() const;
  // The most that the process is charged in any phase of the run: load, train, evaluate, save, resume. On a GPU, there.
  std::int64_t peak_bytes() const;
  std::int64_t minimum_bytes() const;
  std::int64_t arena_bytes() const;    // the one block that holds every tensor
  std::int64_t process_bytes() const;  // everything else
  double step_seconds() const;         // predicted, of an optimizer step
  std::int64_t micro_batch_size() const;
  std::int64_t gradient_accumulation_steps() const;
  std::vector<Change> changes() const;
  // docs/plan_format.md describes it.
  std::string json() const;
  // What `headroom plan --explain` prints: bytes and seconds per technique, and all plans that none beats in both.
  std::string explanation() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// After an optimizer step.
struct Step {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
  std::int64_t resident_bytes = 0;  // of this process
};

// Means over the targets of a data set.
struct Evaluation {
  double loss = 0;
  double perplexity = 0;  // exp(loss)
  std::int64_t targets = 0;
  std::optional<double> accuracy;  // of models that predict classes or masked tokens
};

// All optional. Called on the thread that called, between steps; what they throw ends the call as it is, without a
// save.
struct Callbacks {
  std::function<void(const Plan&)> planned;
  std::function<void(const std::string&)> note;  // a line for people
  std::function<void(const Step&)> step;
  std::function<void(std::int64_t step, const std::string& set, const Evaluation&)> evaluated;
  std::function<void(std::int64_t step, const std::string& directory)> saved;
  // Asked after each step: true saves a checkpoint and ends the run.
  std::function<bool()> should_stop;
};

struct Training {
  std::int64_t steps = 0;  // of the whole run, those before a resume too
  bool stopped = false;    // by should_stop
  std::string output_dir;  // model, checkpoints, metrics.jsonl, plan.json, run.json
};

struct Generation {
  std::string text;
  std::vector<std::int32_t> ids;
  std::string finish_reason;  // "stop", or "length"
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0, decode_seconds = 0;
};

// What config.json says of a model.
struct ModelFacts {
  std::string architecture;  // "LlamaForCausalLM"
  std::string family;        // "llama"
  std::int64_t parameters = 0;
  std::int64_t layers = 0;
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;  // the longest sequence
};

// Reads config.json of a model directory, or a bare config.json. Thread-safe.
ModelFacts describe_model(const std::string& model);

// A model and the options that its runs share. What the calling program holds already is booked in the budget as a part
// of the process; what it allocates later is not. Plans may be made by several threads at once. Of runs (train,
// evaluate, generate) a process does one at a time: a second call waits for the first to end.
class Session {
 public:
  // `model`: a directory in Hugging Face layout, for plan() also a bare config.json. Of the options each call takes
  // those that it knows. Throws Error(usage) for one that no call knows. Reads no file.
  explicit Session(std::string model, Options options = {});

  // The fastest plan of a training run inside the budget; one that is not feasible is no error. Writes nothing.
  Plan plan(const Options& options = {}) const;
  // Plans, and does exactly that; writes to the option "output-dir". Throws Refusal before anything is written.
  Training train(const Options& options = {}, const Callbacks& callbacks = {}) const;
  // Over the files of option "data". Throws Refusal.
  Evaluation evaluate(const Options& options = {}, const Callbacks& callbacks = {}) const;
  // `on_text` gets each piece of text, UTF-8 of whole characters, and ends the generation by returning false. Throws
  // Refusal.
  Generation generate(const std::string& prompt, const Options& options = {},
                      const std::function<bool(std::string_view)>& on_text = {}, const Callbacks& callbacks = {}) const;

 private:
  std::string model_;
  Options options_;
};

// An adapter (LoRA, of headroom or PEFT) merged into its base model, as a new directory in Hugging Face layout.
// `save_dtype`: "float32" or "bfloat16".
void merge(const std::string& model, const std::string& adapter, const std::string& output_dir,
           const std::string& save_dtype = "float32");

}  // namespace headroom::api
