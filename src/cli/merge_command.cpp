#include <fmt/format.h>

#include "cli/command.h"
#include "cli/messages.h"
#include "engine/merge.h"

namespace headroom {
namespace {

int run_merge(const MergeOptions& options) {
  merge_adapter(options);
  print_note(fmt::format("wrote {}", options.output_dir.string()));
  return 0;
}

}  // namespace

Command merge_command() {
  return {"merge", "merge an adapter into its base model, in Hugging Face layout", [](CLI::App& app) {
            auto options = std::make_shared<MergeOptions>();
            scalar(app, "--model", options->model, "the base model's directory")->required();
            scalar(app, "--adapter", options->adapter, "the directory of adapter_config.json, from headroom or PEFT")
                ->required();
            scalar(app, "--output-dir", options->output_dir, "where the merged model goes")->required();
            memory_option(app, "--memory", options->memory, "refuse if the process may need more memory than this");
            scalar(app, "--save-dtype", options->save_dtype, "float32, bfloat16 or float16")->capture_default_str();
            return [options] { return run_merge(*options); };
          }};
}

}  // namespace headroom
