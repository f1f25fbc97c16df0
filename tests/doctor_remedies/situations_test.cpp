// Situations: each of a situation's signs shows it somewhere, and its advice is complete in every system.
#include "doctor/remedies/situations/situation.h"

#include "incidents.h"

namespace headroom::doctor {
namespace {

using testing::HasSubstr;

Message host_message() {
  Message message;
  message.framework = "linux-oom";
  message.phase = "host_ram";
  message.hints = {"host_ram"};
  return message;
}

// Cases in which some situation is possible: training, prediction, servers, the host, another framework.
std::vector<Case> possible_cases() {
  std::vector<Case> cases;
  const auto with = [&](const Message& message, const std::string& log) -> Case& {
    Case& incident = cases.emplace_back();
    incident.messages.push_back(message);
    incident.log_text = log;
    return incident;
  };
  for (const char* phase : {"unknown", "eval", "load", "checkpoint_save", "inference"}) {
    Message message = cuda_message(0.3, 0.1, 9, 0.2, 11);
    message.phase = phase;
    with(message, "fsdp\n");
    with(message, "fsdp [rank1]\n");
    with(message, "[rank1]\n");
    with(message, "site-packages/transformers/");
    with(message, "--max_length 4096\n");
    with(message, "in training_step\n");
    Case& job = with(message, "");
    job.job = training_job(System::hf_trainer);
  }
  for (const System system : {System::vllm, System::sglang, System::llama_server}) {
    with(cuda_message(0.3, 0.1, 9, 0.2, 11), "").job = serving_job(system);
    cases.emplace_back().job = serving_job(system);
  }
  with(host_message(), "");
  with(host_message(), "").setup_text = "deepspeed\n";
  with(host_message(), "openrlhf\n");
  with(host_message(), "megatron\n");
  with(host_message(), "colab\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "megatron\n");
  Message shared = host_message();
  shared.text = "shared memory";
  with(shared, "");
  Message library;
  library.framework = "cudnn";
  with(library, "tensorflow\n");
  library.framework = "cublas";
  with(library, "");
  library.framework = "jax";
  with(library, "");
  library.framework = "cuda";
  with(library, ".prototxt\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "grpo_trainer vllm\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "ollama\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "actor_rollout_ref\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "openrlhf\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "openrlhf.cli.train_sft\n");
  cases.emplace_back().setup_text = "ollama\n";
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "lora\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "hubert\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "sdxl\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "flux.1\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "llama_model_loader private_gpt\n");
  with(cuda_message(0.3, 0.1, 9, 0.2, 11), "th neural_style.lua\n");
  shared.framework = "nccl";
  with(shared, "");
  return cases;
}

bool seen_in(const Case& incident, const std::string& name) { return cause_of(diagnose(incident), name) != nullptr; }

TEST(Situations, EachIsSeenByEachOfItsSigns) {
  const std::vector<Case> cases = possible_cases();
  for (const Situation* situation : all_situations())
    for (const Sign& sign : situation->signs()) {
      const std::string word(sign.words.substr(0, sign.words.find('|')));
      const bool seen = std::any_of(cases.begin(), cases.end(), [&](Case incident) {
        (sign.in == Sign::In::setup ? incident.setup_text : incident.log_text) += word;
        return seen_in(incident, std::string(situation->name));
      });
      EXPECT_TRUE(seen) << situation->name << ": " << word;
    }
}

TEST(Situations, AreRecordsOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Situation* situation : all_situations()) {
    EXPECT_TRUE(names.insert(situation->name).second) << situation->name << " twice";
    EXPECT_TRUE(situation->signs().size() > 0 || situation->figures) << situation->name << " is never seen";
    EXPECT_GT(situation->advice().size(), 0u) << situation->name;
    for (const Sign& sign : situation->signs())
      for (const char c : sign.words) EXPECT_FALSE(c >= 'A' && c <= 'Z') << situation->name << ": " << sign.words;
    for (const Advice& advice : situation->advice()) EXPECT_NO_THROW(technique(advice.technique)) << advice.technique;
  }
}

// No advice contains a placeholder that was not filled in.
TEST(Situations, AdviceIsSpeltInEverySystem) {
  for (Case incident : possible_cases()) {
    for (const Situation* situation : all_situations())
      for (const Sign& sign : situation->signs())
        incident.log_text += std::string(sign.words.substr(0, sign.words.find('|'))) + "\n";
    for (const Remedy& remedy : diagnose(incident).remedies)
      for (const char* open : {"{micro}", "{acc}", "{seq}", "{count}", "{length}", "{fraction}", "{tokens}", "{gib}"})
        EXPECT_EQ(remedy.set.find(open), std::string::npos) << remedy.set;
  }
}

Case message_case(Message message, const std::string& log = "") {
  Case incident;
  incident.messages.push_back(std::move(message));
  incident.log_text = log;
  return incident;
}

TEST(Situations, OneInputBeyondTheDeviceIsNoMatterOfTheBatch) {
  const Diagnosis diagnosis = diagnose(message_case(cuda_message(219, 1, 5, 0.1, 8)));
  EXPECT_NE(cause_of(diagnosis, "request_beyond_the_device"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "input-size");
}

TEST(Situations, AttentionOfAnImageBeyondTheDevice) {
  for (const char* log : {"our video model stops at the first frames\n", "a transformer for large photographs\n",
                          "cross attention over all pixels of an image\n"}) {
    const Diagnosis diagnosis = diagnose(message_case(cuda_message(180, 12, 11, 0.1, 24), log));
    EXPECT_NE(cause_of(diagnosis, "attention_beyond_the_device"), nullptr) << log;
    EXPECT_EQ(diagnosis.remedies[0].name, "input-size");
    EXPECT_EQ(diagnosis.remedies[1].name, "flash-attention");
    EXPECT_EQ(remedy_of(diagnosis, "expandable-segments"), nullptr);
  }
  const Case enlarged = message_case(cuda_message(180, 12, 11, 0.1, 24), "esrgan, thanks for your attention\n");
  EXPECT_FALSE(seen_in(enlarged, "attention_beyond_the_device"));
  EXPECT_FALSE(
      seen_in(message_case(cuda_message(30, 12, 11, 0.1, 24), "a video model\n"), "attention_beyond_the_device"));
}

// PyTorch's own message ends with words about reserved memory.
TEST(Situations, ReservedMemoryIsAPersonsWord) {
  Message message = cuda_message(0, 0, 0, 0, 0);
  for (auto* field : {&message.requested_bytes, &message.allocated_bytes, &message.reserved_bytes,
                      &message.reserved_unallocated_bytes, &message.capacity_bytes, &message.process_bytes})
    field->reset();
  EXPECT_TRUE(seen_in(message_case(message, "out of memory while half of it is only reserved\n"), "reserved_in_words"));
  EXPECT_FALSE(seen_in(message_case(message,
                                    "out of memory; 2 gib reserved in total by pytorch) if reserved memory is >> "
                                    "allocated memory try setting max_split_size_mb to avoid fragmentation\n"),
                       "reserved_in_words"));
  message.requested_bytes = gib(300);
  message.capacity_bytes = gib(24);
  for (const char* name : {"reserved_in_words", "fragments_by_the_log"})
    EXPECT_FALSE(seen_in(message_case(message, "it is reserved, perhaps memory fragmentation\n"), name)) << name;
}

TEST(Situations, ARecordingThatIsOnlyReadIsCut) {
  for (const char* log : {"i transcribe an audio file of two hours\n", "inference on one long recording\n",
                          "a pretrained speech model, the demo gets a talk of 50 minutes\n"}) {
    const Diagnosis read = diagnose(message_case(cuda_message(40, 3, 6, 0.1, 16), log));
    EXPECT_NE(cause_of(read, "recording_read_whole"), nullptr) << log;
    EXPECT_THAT(read.remedies[0].set, HasSubstr("in pieces"));
    EXPECT_EQ(read.remedies[1].name, "flash-attention");
    EXPECT_EQ(remedy_of(read, "length-buckets"), nullptr) << log;
  }
  const Case trained = message_case(cuda_message(40, 3, 6, 0.1, 16), "training on audio, then a demo of inference\n");
  EXPECT_TRUE(seen_in(trained, "request_of_recordings"));
  EXPECT_FALSE(seen_in(trained, "recording_read_whole"));
}

// That torchvision is installed says nothing of the inputs.
TEST(Situations, AnInstallationIsNoImage) {
  const auto with = [](const std::string& log) { return message_case(cuda_message(0.3, 0.1, 9, 0.2, 11), log); };
  EXPECT_FALSE(seen_in(with("pip install torch torchvision torchaudio; a speech synthesis trains\n"), "large_images"));
  EXPECT_TRUE(seen_in(with("from torchvision import models\n"), "large_images"));
  const Diagnosis speech = diagnose(with("pip install torch torchvision torchaudio; a speech synthesis trains\n"));
  EXPECT_THAT(expect_remedy(speech, "input-size").set, HasSubstr("shorter recordings"));
  EXPECT_EQ(expect_remedy(speech, "input-size").effect.find("images"), std::string::npos);
  EXPECT_THAT(expect_remedy(diagnose(with("wav2lip trains on faces\n")), "input-size").set, HasSubstr("crop"));
}

TEST(Situations, ASmallDeviceInAForwardPassIsFilledByItsBatch) {
  Message message = cuda_message(0.02, 0.016, 1.55, 0.08, 1.96);
  message.phase = "forward";
  const Diagnosis diagnosis = diagnose(message_case(message));
  EXPECT_EQ(cause_of(diagnosis, "small_device"), nullptr);
  EXPECT_EQ(diagnosis.remedies[0].name, "micro-batch");
}

TEST(Situations, MoreThanTheDeviceIsLentByTheHost) {
  EXPECT_TRUE(seen_in(message_case(cuda_message(0.06, 0, 22.4, 0.1, 8)), "beyond_the_device"));
  EXPECT_FALSE(seen_in(message_case(cuda_message(0.06, 0, 7.4, 0.1, 8)), "beyond_the_device"));
}

TEST(Situations, ASmallDeviceIsFilledByTheStates) {
  const Diagnosis diagnosis = diagnose(message_case(cuda_message(0.02, 0.016, 1.55, 0.08, 1.96)));
  EXPECT_NE(cause_of(diagnosis, "small_device"), nullptr);
  expect_remedy(diagnosis, "on-cpu");
}

TEST(Situations, FreeMemoryThatIsRefused) {
  Message message = cuda_message(0.02, 2.35, 0.8, 0.02, 4);
  EXPECT_TRUE(seen_in(message_case(message), "refused_beside_free_memory"));
}

TEST(Situations, TheBarOfStepsTellsThatItWentWell) {
  const std::string bar = "  3%|3         | 120/4000 [02:11<1:10:00,  1.09s/it]\n";
  EXPECT_TRUE(seen_in(message_case(cuda_message(0.3, 0.1, 9, 0.2, 11), bar), "larger_batch_later"));
  const std::string first = "  0%|          | 0/4000 [00:00<?, ?it/s]\n";
  EXPECT_FALSE(seen_in(message_case(cuda_message(0.3, 0.1, 9, 0.2, 11), first), "larger_batch_later"));
}

TEST(Situations, TheDefaultContextIsTheModelsOwn) {
  Case incident = case_of(serving_job(System::llama_server), "rtx-3060");
  EXPECT_TRUE(seen_in(incident, "default_context"));
  incident.job->serving.max_model_len = 4096;
  EXPECT_FALSE(seen_in(incident, "default_context"));
}

TEST(Situations, TheEvidenceStandsInTheCause) {
  const Diagnosis diagnosis = diagnose(
      message_case(cuda_message(0.5, 0.3, 35, 1, 39), "warning: failed to clone() tensor with name lm_head\n"));
  ASSERT_NE(cause_of(diagnosis, "full_state_dict"), nullptr);
  EXPECT_THAT(cause_of(diagnosis, "full_state_dict")->evidence, HasSubstr("`failed to clone() tensor` in the log"));
  EXPECT_EQ(diagnosis.remedies[0].name, "sharded-save");
}

TEST(Situations, AnOffloadBehindAMoveHoldsNothingBack) {
  Case incident = message_case(cuda_message(0.02, 0.01, 13.9, 0.1, 14.7));
  incident.setup_text = "pipe.enable_model_cpu_offload()\n";
  EXPECT_FALSE(seen_in(incident, "moved_before_the_offload"));
  incident.setup_text += "pipe = pipe.to(\"cuda\")\n";
  EXPECT_TRUE(seen_in(incident, "moved_before_the_offload"));
  EXPECT_EQ(diagnose(incident).remedies[0].name, "low-vram");
}

TEST(Situations, APipelineWithoutATypeIsIn32Bits) {
  Case incident = message_case(cuda_message(0.02, 0.01, 13.9, 0.1, 14.7));
  incident.setup_text = "pipe = mochipipeline.from_pretrained(\"genmo/mochi-1-preview\")\n";
  EXPECT_TRUE(seen_in(incident, "pipeline_in_32_bits"));
  EXPECT_EQ(diagnose(incident).remedies[0].name, "half-inference");
  incident.setup_text += "torch_dtype=torch.bfloat16\n";
  EXPECT_FALSE(seen_in(incident, "pipeline_in_32_bits"));
}

TEST(Situations, ALargeTensorOfAPipelineIsItsImage) {
  const std::string log = "python scripts/img2img.py\n";
  EXPECT_TRUE(seen_in(message_case(cuda_message(8, 1, 8, 0.1, 16), log), "one_tensor_of_a_pipeline"));
  EXPECT_FALSE(seen_in(message_case(cuda_message(0.1, 0.05, 15, 0.1, 16), log), "one_tensor_of_a_pipeline"));
  EXPECT_FALSE(seen_in(message_case(cuda_message(24, 13, 7, 0.1, 23.7), log), "request_beyond_the_device"));
}

TEST(Situations, ADeviceOf4Gb) {
  EXPECT_TRUE(seen_in(message_case(cuda_message(0.3, 0.1, 2.5, 0.1, 4)), "device_of_4_gb"));
  EXPECT_FALSE(seen_in(message_case(cuda_message(0.3, 0.1, 5, 0.1, 6)), "device_of_4_gb"));
}

TEST(Situations, ATrainingOnGivenAnswersHasNoServer) {
  Case incident = message_case(cuda_message(0.5, 0.1, 77, 0.5, 79));
  incident.setup_text = "deepspeed --module openrlhf.cli.train_dpo --micro_train_batch_size 1 --zero_stage 3\n";
  EXPECT_TRUE(seen_in(incident, "training_on_given_answers"));
  EXPECT_FALSE(seen_in(incident, "training_by_openrlhf"));
  incident.setup_text = "python -m openrlhf.cli.train_ppo_ray --micro_train_batch_size 1\n";
  EXPECT_TRUE(seen_in(incident, "training_by_openrlhf"));
  EXPECT_FALSE(seen_in(incident, "training_on_given_answers"));
}

TEST(Situations, SwiftCutsNothingByItself) {
  Case incident = message_case(cuda_message(0.5, 0.1, 22, 0.5, 23.6));
  incident.setup_text = "swift sft --model ovis2-4b --train_type lora\n";
  EXPECT_TRUE(seen_in(incident, "training_by_swift"));
  EXPECT_EQ(diagnose(incident).remedies[0].name, "sequence-length");
}

TEST(Situations, ToolboxesAreToldInTheirOwnOptions) {
  const auto first = [](const std::string& log) {
    return diagnose(message_case(cuda_message(0.3, 0.1, 9, 0.2, 11), log));
  };
  EXPECT_THAT(first("detectron2 ims_per_batch: 16\n").remedies[0].set, HasSubstr("SOLVER.IMS_PER_BATCH"));
  EXPECT_THAT(first("mmdetection, memory grows\n").remedies[0].set, HasSubstr("gpu_assign_thr"));
  EXPECT_THAT(first("ultralytics yolov8s\n").remedies[1].set, HasSubstr("imgsz"));
  EXPECT_EQ(first("espnet asr training\n").remedies[0].name, "sequence-length");
  EXPECT_THAT(first("nemo_automodel recipe\n").remedies[0].set, HasSubstr("activation_checkpointing: true"));
}

TEST(Situations, ABatchOfOneIsNotMadeSmaller) {
  const std::string log = "yolov3 train.py --batch-size 1\n";
  const Diagnosis one = diagnose(message_case(cuda_message(0.3, 0.1, 3, 0.2, 4), log));
  EXPECT_EQ(remedy_of(one, "micro-batch"), nullptr);
  EXPECT_EQ(one.remedies[0].name, "input-size");
  const std::string tried = "yolov3: reducing the batch size does not help\n";
  const Diagnosis after = diagnose(message_case(cuda_message(0.3, 0.1, 9, 0.2, 11), tried));
  EXPECT_EQ(after.remedies[0].name, "input-size");
}

TEST(Situations, AFrozenBaseIsNotWorthDividing) {
  const std::string log = "lora of a 30b model, deepspeed zero-3\n";
  EXPECT_TRUE(seen_in(message_case(cuda_message(0.3, 0.1, 62, 0.2, 64), log), "frozen_base_is_divided"));
  EXPECT_FALSE(
      seen_in(message_case(cuda_message(0.3, 0.1, 62, 0.2, 64), "deepspeed zero-3\n"), "frozen_base_is_divided"));
  const Diagnosis diagnosis = diagnose(message_case(cuda_message(0.3, 0.1, 62, 0.2, 64), log));
  EXPECT_EQ(diagnosis.remedies[0].name, "qlora") << "DeepSpeed has no option for it: the situation's words";
}

TEST(Situations, TheBareNameOfAServer) {
  const Case served = message_case(cuda_message(3.5, 1.4, 17, 4.7, 23.6), "vllm 24 gb card\n");
  EXPECT_TRUE(seen_in(served, "pool_leaves_no_room"));
  const Case trained = message_case(cuda_message(3.5, 1.4, 17, 4.7, 23.6), "grpo with vllm\n");
  EXPECT_FALSE(seen_in(trained, "pool_leaves_no_room"));
}

TEST(Situations, AShareOfSglangInAnotherFile) {
  Case incident = message_case(cuda_message(4, 2.2, 170, 1, 184));
  incident.setup_text = "decode:\n  mem-fraction-static: 0.95\n";
  EXPECT_TRUE(seen_in(incident, "share_of_an_unread_file"));
  EXPECT_EQ(diagnose(incident).remedies[0].name, "gpu-memory-utilization");
}

}  // namespace
}  // namespace headroom::doctor
