#include "arguments/inference_options.h"

#include "planner/pipeline.h"

namespace headroom {

void add_inference_options(CLI::App& app, InferenceOptions& o, TierArguments& tiers, const char* precisions) {
  scalar(app, "--model", o.model, "model directory, or an adapter's directory, whose config names the base model")
      ->required();
  scalar(app, "--adapter", o.adapter, "LoRA adapter to apply: a directory that train or PEFT wrote")->type_name("DIR");
  memory_option(app, "--memory", o.machine.memory,
                "budget for all memory that the kernel charges to this process (default: 90 % of available memory); on "
                "a GPU: for all device memory of the process (default: all free device memory)");
  add_tier_options(app, o.machine, tiers, "weights");
  scalar(app, "--precision", o.techniques.precision, precisions)->capture_default_str();
  scalar(app, "--device", o.machine.device, "cpu or cuda:N")->capture_default_str();
  scalar(app, "--threads", o.machine.threads,
         "threads (default: those of --profile, else one for each CPU that the process may use)");
  scalar(app, "--profile", o.machine.profile, "profile file or shipped profile, as for train");
  app.add_flag("--force", o.machine.force, "accept a budget above what the machine can give");
  app.footer(technique_help(inference_passes()));
}

namespace {

// What evaluate and generate say.
void add_output_options(CLI::App& app, InferenceArguments& a) {
  app.add_flag("--json", a.json, "the result as JSON on stdout");
  app.add_flag("--quiet", a.quiet, "no notes");
}

// At most one of them; grammar_source() says so.
void add_grammar_options(CLI::App& app, GrammarOptions& g) {
  scalar(app, "--json-schema", g.json_schema, "the text is JSON that matches this schema, given as a file or as text")
      ->type_name("FILE|JSON");
  app.add_flag("--json-object", g.json_object, "the text is a JSON object");
  scalar(app, "--regex", g.regex, "the text matches this regular expression, from its beginning to its end");
  app.add_option("--choice", g.choices, "the text is one of these; repeatable")->allow_extra_args(false);
  scalar(app, "--grammar", g.grammar, "the text follows this grammar in EBNF (GBNF)")->type_name("FILE");
}

}  // namespace

void add_evaluate_options(CLI::App& app, InferenceArguments& a) {
  add_inference_options(app, a.options, a.tiers, "32-true, bf16-mixed, bf16-true, 16-mixed or 16-true");
  add_output_options(app, a);
  app.add_option("--data", a.options.data.train, "data: .txt, .jsonl, .json or .tsv; repeatable")->type_name("FILE");
  scalar(app, "--max-seq-length", a.options.data.max_seq_length,
         "tokens per window (default: 512, or the model's positions if fewer)");
  scalar(app, "--mlm-probability", a.options.data.mlm_probability, "masked-LM models: share of tokens to predict")
      ->capture_default_str();
}

void add_generate_options(CLI::App& app, InferenceArguments& a) {
  GenerationRequest& g = a.generation;
  add_inference_options(app, a.options, a.tiers, "32-true; bf16-true or 16-true: weights and cache in 16 bits");
  add_output_options(app, a);
  scalar(app, "--prompt", g.prompt.prompt, "text to continue; - reads it from stdin (default: start after BOS)");
  app.add_flag("--chat", g.prompt.chat,
               "treat the prompt as a user's message: apply the model's chat template and generate the answer");
  scalar(app, "--system,--system-prompt", g.prompt.system, "with --chat: the system message");
  app.add_option("--stop", g.stops,
                 "stop before this text, or at this special token, in addition to the model's own; repeatable")
      ->allow_extra_args(false);
  scalar(app, "--max-new-tokens", g.max_new_tokens,
         "tokens to generate (default: 128, or as many as the model's positions leave)");
  scalar(app, "--temperature", g.sampling.temperature, "0 = greedy")->capture_default_str();
  scalar(app, "--top-p", g.sampling.top_p, "sample from the most likely tokens whose probabilities sum to this")
      ->capture_default_str();
  scalar(app, "--top-k", g.sampling.top_k, "sample from this many of the most likely tokens; 0 = all")
      ->capture_default_str();
  add_grammar_options(app, g.grammar);
  scalar(app, "--seed", g.sampling.seed, "random seed for sampling")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

}  // namespace headroom
