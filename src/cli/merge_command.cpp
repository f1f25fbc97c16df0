#include "base/error.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "train/merge.h"

namespace headroom {
namespace {

int run_merge(const MergeOptions& options) {
  if (options.save_dtype != "float32" && options.save_dtype != "bfloat16")
    throw Error(ErrorKind::usage, fmt::format("--save-dtype {} is not known", options.save_dtype),
                "float32 or bfloat16");
  merge_adapter(options);
  print_note(fmt::format("wrote {}", options.output_dir.string()));
  return 0;
}

}  // namespace

Command merge_command() {
  return {
      "merge", "an adapter merged into its base model, in Hugging Face layout", [](CLI::App& app) {
        auto options = std::make_shared<MergeOptions>();
        scalar(app, "--model", options->model, "the base model's directory")->required();
        scalar(app, "--adapter", options->adapter, "adapter_config.json's directory, of headroom or PEFT")->required();
        scalar(app, "--output-dir", options->output_dir, "where the merged model goes")->required();
        memory_option(app, "--memory", options->memory,
                      "refuses where all the kernel charges this process may be more");
        scalar(app, "--save-dtype", options->save_dtype, "float32 or bfloat16")->capture_default_str();
        return [options] { return run_merge(*options); };
      }};
}

}  // namespace headroom
