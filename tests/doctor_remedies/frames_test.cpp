// What stack frames show: logits of the loss, joined keys and values, an update of all tensors at once.
#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Case message_case(const std::string& log, double requested = 0.3) {
  Case incident;
  incident.messages.push_back(cuda_message(requested, 0.1, 37, 0.5, 39));
  incident.log_text = log;
  return incident;
}

Case job_case(System system, const std::string& log, double requested = 0.3) {
  Case incident = case_of(training_job(system, 4, 2048), "a100-40gb");
  incident.messages.push_back(cuda_message(requested, 0.1, 37, 0.5, 39));
  incident.log_text = log;
  return incident;
}

// The first three of a diagnosis, by name.
std::vector<std::string> first_three(const Diagnosis& diagnosis) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(3, diagnosis.remedies.size()); ++i)
    names.push_back(diagnosis.remedies[i].name);
  return names;
}
bool among_the_first(const Diagnosis& diagnosis, const std::string& name) {
  const std::vector<std::string> names = first_three(diagnosis);
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Frames, ALossOfAnUnknownProgramHasThreeWaysOut) {
  for (const char* frame : {"in fixed_cross_entropy\n", "shift_logits = logits[..., :-1, :]\n",
                            "logits = logits.float()\n", "in _convert_to_fp32\n", "in selective_log_softmax\n"}) {
    const Diagnosis diagnosis = diagnose(message_case(frame));
    ASSERT_NE(cause_of(diagnosis, "logits_of_long_rows"), nullptr) << frame;
    for (const char* name : {"liger", "micro-batch", "sequence-length"})
      EXPECT_TRUE(among_the_first(diagnosis, name)) << frame << name;
  }
}

TEST(Frames, ALossOfImagesIsNotAsWideAsAVocabulary) {
  const Diagnosis diagnosis = diagnose(message_case("segmentation of images 512x512: in fixed_cross_entropy\n"));
  EXPECT_EQ(cause_of(diagnosis, "logits_of_long_rows"), nullptr);
}

// 4 x 2048 x 128256 x 4 bytes are 3.9 GiB.
TEST(Frames, TheLogitsAreCountedForAKnownJob) {
  const Diagnosis framed = diagnose(job_case(System::hf_trainer, "in forcausallmloss\n"));
  ASSERT_NE(cause_of(framed, "logits_of_the_loss"), nullptr);
  EXPECT_THAT(cause_of(framed, "logits_of_the_loss")->evidence, HasSubstr("4 x 2048 tokens x 128256"));
  const Diagnosis asked = diagnose(job_case(System::hf_trainer, "", 3.914));
  ASSERT_NE(cause_of(asked, "logits_of_the_loss"), nullptr);
  EXPECT_THAT(cause_of(asked, "logits_of_the_loss")->evidence, HasSubstr("the request"));
  EXPECT_NE(cause_of(diagnose(job_case(System::hf_trainer, "", 1.957)), "logits_of_the_loss"), nullptr);  // 16 bits
  EXPECT_EQ(cause_of(diagnose(job_case(System::hf_trainer, "", 3.0)), "logits_of_the_loss"), nullptr);
}

TEST(Frames, TheLossIsToldInTheSystemsOwnWords) {
  struct Spelt {
    System system;
    const char *technique, *words;
  };
  for (const Spelt& spelt : {Spelt{System::hf_trainer, "liger", "use_liger_kernel"},
                             {System::axolotl, "liger", "LigerPlugin"},
                             {System::llamafactory, "liger", "enable_liger_kernel"},
                             {System::torchtune, "chunked-loss", "LinearCrossEntropyLoss"}}) {
    const Remedy remedy = expect_remedy(diagnose(job_case(spelt.system, "in fixed_cross_entropy\n")), spelt.technique);
    EXPECT_THAT(remedy.set, HasSubstr(spelt.words));
    EXPECT_GT(remedy.evidence, 0.72) << spelt.words;
  }
}

constexpr const char* kJoin = "keys = torch.cat([self.key_cache[layer_idx], key_states], dim=-2)\n";
std::string joined_keys(const std::string& before) { return before + std::string(kJoin); }

TEST(Frames, KeysOfAPredictionGrowWithItsTokens) {
  const Diagnosis diagnosis = diagnose(message_case(joined_keys("in generate\n")));
  ASSERT_NE(cause_of(diagnosis, "keys_joined_in_a_prediction"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "sequence-length");
  EXPECT_THAT(diagnosis.remedies[0].set, HasSubstr("max_new_tokens"));
  EXPECT_TRUE(among_the_first(diagnosis, "micro-batch"));
  EXPECT_THAT(expect_remedy(diagnosis, "kv-dtype").set, HasSubstr("cache_implementation"));
}

TEST(Frames, ATrainingNeedsNoEarlierKeys) {
  const Diagnosis diagnosis = diagnose(message_case(joined_keys("in training_step\n")));
  EXPECT_EQ(cause_of(diagnosis, "keys_joined_in_a_prediction"), nullptr);
  ASSERT_NE(cause_of(diagnosis, "keys_kept_in_a_training"), nullptr);
  EXPECT_THAT(expect_remedy(diagnosis, "checkpointing").set, HasSubstr("use_cache = False"));
}

TEST(Frames, AnUpdateOfAllTensorsTakesTemporaries) {
  const Diagnosis diagnosis =
      diagnose(message_case("in _multi_tensor_adam\nexp_avg_sq_sqrt = torch._foreach_sqrt(device_exp_avg_sqs)\n"));
  ASSERT_NE(cause_of(diagnosis, "update_of_all_tensors_at_once"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "fused-optimizer");
  EXPECT_THAT(diagnosis.remedies[0].set, HasSubstr("foreach=False"));
  EXPECT_TRUE(among_the_first(diagnosis, "optimizer-8bit"));
  const Diagnosis trainer = diagnose(job_case(System::hf_trainer, "torch._foreach_sqrt(exp_avg_sq)\n"));
  EXPECT_THAT(expect_remedy(trainer, "fused-optimizer").set, HasSubstr("adamw_torch_fused"));
}

TEST(Frames, AForeachOptimizerIsAlsoNamedInWords) {
  const Diagnosis diagnosis =
      diagnose(message_case("training with pytorch: foreach optimizers take more than before\n"));
  EXPECT_EQ(diagnosis.remedies[0].name, "fused-optimizer");
}

TEST(Frames, ClippingSeesAllGradients) {
  const Diagnosis diagnosis = diagnose(message_case("in clip_grad_norm_\nnorms = torch._foreach_norm(grads)\n"));
  ASSERT_NE(cause_of(diagnosis, "norm_of_all_gradients"), nullptr);
  EXPECT_THAT(expect_remedy(diagnosis, "fused-optimizer").set, HasSubstr("clip_grad_norm_(..., foreach=False)"));
}

}  // namespace
}  // namespace headroom::doctor
