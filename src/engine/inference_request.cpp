#include "engine/inference_request.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/budget.h"
#include "engine/device_facts.h"
#include "engine/process_bytes.h"
#include "engine/technique_pins.h"
#include "generate/generator.h"
#include "models/decoder.h"
#include "planner/estimates.h"
#include "planner/techniques/precision.h"

namespace headroom {

PlanRequest inference_request(const MachineOptions& machine, const TechniqueOptions& techniques,
                              const ModelFiles& model, bool tokenizer_stays, int64_t adapter) {
  PlanRequest request;
  request.facts = device_facts(machine, request.profile);
  request.model = model.spec.family;
  request.parameters = parameter_count(model.spec);
  request.budget_bytes = machine.memory > 0 ? machine.memory : default_budget(machine.device, machine.profile);
  request.host_budget_bytes = machine.host_memory;
  request.disk_budget_bytes = machine.disk_memory;
  for (const auto& [name, setting] : techniques.pins) request.techniques[name] = {setting};
  set_precision(request, techniques.precision);
  pin_stored_codes(request, model.spec);
  ProcessBytes process = process_parts(model, request.facts, tokenizer_stays);
  constexpr int64_t kPrograms = 2;  // prefill and decode
  process.copies = reading_bytes(model, request, kPrograms);
  process.caller = machine.caller_bytes;
  process.data += adapter;
  book_process(request, process);
  return request;
}

void refuse_without_text(const ModelFiles& model) {
  if (model.spec.objective == Objective::language) return;
  throw Error(ErrorKind::usage,
              fmt::format("{}: a {} predicts masked tokens or classes and generates no text",
                          model.config.source.string(), model.spec.architecture),
              "use the checkpoint of a causal language model");
}

namespace {

DType kept_type(const PlanRequest& request) {
  const Precision* const precision = narrow_precision_of(request);
  return precision && !precision->keeps_fp32 ? precision->narrow : DType::f32;
}

}  // namespace

Plan generation_plan(PlanRequest request, const ModelSpec& spec, const GenerationWork& work) {
  const int64_t positions = work.prompt_tokens + work.new_tokens;
  request.seq_length = positions;
  const DType cache = kept_type(request);
  const auto build = [&](int64_t chunk) { return build_generation(spec, positions, chunk, cache); };
  return plan_generation(request, work, prompt_chunks(work.prompt_tokens), build);
}

Plan texts_plan(PlanRequest request, const ModelFiles& model, int64_t positions, std::span<const int64_t> chunks) {
  request.seq_length = positions;
  std::vector<std::string> programs;
  for (size_t i = 0; i < chunks.size(); ++i) programs.push_back(prefill_program(chunks, i));
  programs.push_back("decode");
  book_prefills(request, model, static_cast<int64_t>(chunks.size()) - 1);
  Graph graph = build_generation(model.spec, positions, chunks, kept_type(request));
  return plan_texts(request, std::move(graph), programs, chunks.front());
}

}  // namespace headroom
