#include <fmt/format.h>

#include "cli/command.h"
#include "cli/messages.h"
#include "engine/quantize.h"

namespace headroom {
namespace {

int run_quantize(const QuantizeOptions& options) {
  const std::string lacking = quantize_model(options);
  print_note(fmt::format("wrote {}", options.output_dir.string()));
  if (!lacking.empty()) print_note(fmt::format("the GGUF holds no vocabulary: {}", lacking));
  return 0;
}

}  // namespace

Command quantize_command() {
  return {
      "quantize", "write a model with its matrices in 4 or 8 bits, in Hugging Face layout or as a GGUF",
      [](CLI::App& app) {
        auto options = std::make_shared<QuantizeOptions>();
        scalar(app, "--model", options->model, "the model's directory")->required();
        scalar(app, "--output-dir", options->output_dir, "where the quantised model goes")->required();
        scalar(app, "--weights", options->weights,
               "nf4, nf4-dq or fp4 in bitsandbytes' format; int8 or int4 in compressed-tensors' format; qat-int8-int4, "
               "qat-int4 or qat-int8 for a model trained with --technique qat of that kind; f16, bf16, q8_0 or q4_0 "
               "for a GGUF")
            ->capture_default_str();
        scalar(app, "--group-size", options->group_size,
               "for int8 and int4: how many elements of a row share a scale (int8: the whole row; int4: 32)")
            ->check(CLI::PositiveNumber);
        memory_option(app, "--memory", options->memory, "refuse if the process may need more memory than this");
        return [options] { return run_quantize(*options); };
      }};
}

}  // namespace headroom
