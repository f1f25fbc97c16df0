// Evaluation and inference: batch, gradients, kept predictions (T28, T32).
#include "doctor/remedies/rules.h"

namespace headroom::doctor {
namespace {

bool in_evaluation(const CaseView& s) { return s.phase("eval"); }

void eval_batch(const CaseView& s, Findings& findings) {
  if (!s.training() || s.pool() != Pool::device) return;
  const bool estimated = s.incident().estimate && s.incident().estimate->peak_phase == "eval";
  if (!in_evaluation(s) && !estimated && s.job().evaluation.batch.value_or(0) <= s.micro_batch().value_or(1)) return;
  if (s.job().evaluation.batch == 1) return findings.refuse("eval-batch", "it is 1 already");
  int64_t batch = s.micro_batch().value_or(1);
  // The largest batch that fits; one when nothing is known.
  if (estimated || in_evaluation(s)) batch = 1;
  if (estimated)
    for (int64_t candidate = s.job().evaluation.batch.value_or(8) / 2; candidate > batch; candidate /= 2)
      if (s.enough_after({{"eval_batch", std::to_string(candidate)}})) batch = candidate;
  findings.offer(make_remedy(s, "eval-batch", {{"eval", std::to_string(batch)}},
                             {{"eval_batch", std::to_string(batch)}},
                             "evaluation has a batch of its own, and its logits are whole"));
}

void eval_accumulation(const CaseView& s, Findings& findings) {
  if (!in_evaluation(s) || s.pool() != Pool::device || s.job().evaluation.accumulation) return;
  if (s.job().evaluation.loss_only.value_or(false)) return;
  Remedy remedy = make_remedy(s, "eval-accumulation", {{"steps", "1"}}, {},
                              "all predictions of the evaluation set wait on the device until its end");
  remedy.caveats.push_back(
      "they then wait in host memory; prediction_loss_only=True or batch_eval_metrics=True "
      "keeps none");
  findings.offer(std::move(remedy));
}

void no_grad(const CaseView& s, Findings& findings) {
  const bool inference = s.job().task == Task::infer || in_evaluation(s) || s.phase("inference");
  if (!inference || s.serving() || s.pool() != Pool::device) return;
  if (s.job().system == System::hf_trainer || s.job().system == System::trl || s.job().system == System::litgpt)
    return findings.refuse("no-grad", "this system evaluates without gradients already");
  if (!s.log_says("pipeline.from_pretrained|diffusionpipeline|enable_model_cpu_offload|comfyui|webui").empty())
    return findings.refuse("no-grad", "a pipeline predicts without gradients already");
  Changes changes;
  if (!s.job().compute.no_grad.value_or(true)) changes = {{"extras.no_grad", "true"}};
  Remedy remedy =
      make_remedy(s, "no-grad", {}, std::move(changes), "without it every layer keeps its inputs for a backward pass");
  remedy.caveats.push_back(
      "model.eval() does not do this: it switches dropout and batch norm, and saving for the "
      "backward pass goes on");
  findings.offer(std::move(remedy));
}

void half_inference(const CaseView& s, Findings& findings) {
  if (s.job().task != Task::infer || s.pool() != Pool::device || s.half_weights() || s.quantized_base()) return;
  const bool bf16 = !s.gpu() || s.gpu()->bf16;
  Remedy remedy =
      make_remedy(s, "half-inference", {{"dtype", bf16 ? "bfloat16" : "float16"}, {"litgpt", bf16 ? "bf16" : "16"}},
                  {{"weight_dtype", bf16 ? "bfloat16" : "float16"}}, "weights in 16 bits take half");
  findings.offer(std::move(remedy));
}

constexpr Rule kRules[] = {eval_batch, eval_accumulation, no_grad, half_inference};

}  // namespace

std::span<const Rule> evaluation_rules() { return kRules; }

}  // namespace headroom::doctor
