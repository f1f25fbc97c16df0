#include "engine/generate.h"

#include "engine/text_generator.h"

namespace headroom {

Generation generate_text(const InferenceOptions& options, const GenerationRequest& request,
                         const GenerationEvents& events) {
  return TextGenerator(TextGenerator::Texts::one).generate(options, request, events);
}

}  // namespace headroom
