#include <filesystem>

#include "../data_files/data_files.h"
#include "doctor/config/python_calls.h"
#include "expect_config.h"
#include "formats/file.h"

namespace headroom::doctor {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  for (const PythonToken& token : tokenize_python(text, "f"))
    result.push_back(token.kind == PythonToken::Kind::line_end ? "|" : token.text);
  return result;
}

TEST(PythonTokens, StringsOfAllKinds) {
  EXPECT_THAT(words("a = 'x' \"y\" # c\n"), testing::ElementsAre("a", "=", "xy", "|"));
  EXPECT_THAT(words("r'\\n' + b'q'"), testing::ElementsAre("\\n", "+", "q", "|"));
  EXPECT_THAT(words("'''a\n'b'''"), testing::ElementsAre("a\n'b", "|"));
  EXPECT_THAT(words("'\\'\\\\\\n'"), testing::ElementsAre("'\\\n", "|"));
  EXPECT_TRUE(tokenize_python("f'{x}'", "f")[0].interpolated);
  EXPECT_FALSE(tokenize_python("f'x'", "f")[0].interpolated);
}

TEST(PythonTokens, LinesBracketsAndNumbers) {
  EXPECT_THAT(words("f(1,\n  2)\nx\\\n.y"),
              testing::ElementsAre("f", "(", "1", ",", "2", ")", "|", "x", ".", "y", "|"));
  EXPECT_THAT(words("1_000 2e-5 0xff .5 a**b"),
              testing::ElementsAre("1_000", "2e-5", "0xff", ".5", "a", "**", "b", "|"));
  const auto tokens = tokenize_python("a\n\n  b", "f");
  EXPECT_EQ(tokens[2].line, 3);
  EXPECT_FALSE(tokens[2].first);
  expect_error(ErrorKind::format, "f:2: a string without its end", [] { tokenize_python("a\n'b\n", "f"); });
}

std::string value(const std::string& expression) {
  const PythonScript script = read_python_calls("x = " + expression + "\n", "f");
  return script.assignments.at(0).value.kind == PythonValue::Kind::unknown ? "?" : script.assignments[0].value.text;
}

TEST(PythonCalls, Arithmetic) {
  EXPECT_EQ(value("4*8"), "32");
  EXPECT_EQ(value("-(2+3)*2**3//3"), "-14");
  EXPECT_EQ(value("7 % 4 + 10/4"), "5.5");
  EXPECT_EQ(value("'a' + \"b\""), "ab");
  EXPECT_EQ(value("1/0"), "?");
  EXPECT_EQ(value("a if b else 3"), "?");
  EXPECT_EQ(value("torch.bfloat16"), "torch.bfloat16");
  EXPECT_EQ(value("[i for i in x]"), "");
}

TEST(PythonCalls, ConstantsAssignedOnce) {
  const PythonScript script = read_python_calls("A = 4\nB = A * 2\nC = 1\nC = 2\nf(a=A, b=B, c=C, d=D)\n", "f");
  ASSERT_EQ(script.calls.size(), 1u);
  const auto& arguments = script.calls[0].arguments;
  EXPECT_EQ(arguments[0].value.text, "4");
  EXPECT_EQ(arguments[1].value.text, "8");
  EXPECT_EQ(arguments[2].value.kind, PythonValue::Kind::name);
  EXPECT_EQ(arguments[3].value.kind, PythonValue::Kind::name);
}

TEST(PythonCalls, NestedCallsAndHostileText) {
  const PythonScript script = read_python_calls("A(x=B(y=[1, {'k': 2}])).half()\n", "f");
  ASSERT_EQ(script.calls.size(), 3u);
  EXPECT_EQ(script.calls[0].callee, "B");
  EXPECT_EQ(script.calls[2].callee, ".half");
  read_python_calls(std::string(5000, '('), "f");
  read_python_calls(std::string(5000, '-') + "1", "f");
  read_python_calls("f(" + std::string(3000, '[') + ")", "f");
  read_python_calls(
      "a = 1\n" +
          [] {
            std::string text;
            for (int i = 0; i < 500; ++i)
              text += "v" + std::to_string(i + 1) + " = [v" + std::to_string(i) + ", v" + std::to_string(i) + "]\n";
            return text;
          }(),
      "f");
}

TEST(PythonScript, TrainingArgumentsAndLora) {
  const Job job = job_of("train.py", R"(
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, TrainingArguments
MODEL = "meta-llama/Llama-2-7b-hf"
BATCH = 2
bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                         bnb_4bit_compute_dtype=torch.bfloat16)
tokenizer = AutoTokenizer.from_pretrained("other/tokenizer", model_max_length=77)
model = AutoModelForCausalLM.from_pretrained(MODEL, quantization_config=bnb, torch_dtype=torch.bfloat16,
                                             attn_implementation="flash_attention2", device_map="auto")
lora = LoraConfig(r=64, lora_alpha=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
args = TrainingArguments("out", per_device_train_batch_size=BATCH * 2, gradient_accumulation_steps=4, bf16=True,
                         optim="paged_adamw_32bit", gradient_checkpointing=True, learning_rate=2e-4, seed=opts.seed,
                         evaluation_strategy="no", gradient_checkpointing_kwargs={"use_reentrant": False})
)");
  EXPECT_EQ(job.system, System::hf_trainer);
  EXPECT_EQ(job.model, "meta-llama/Llama-2-7b-hf");
  EXPECT_EQ(job.batch.micro, 4);
  EXPECT_EQ(job.batch.accumulation, 4);
  EXPECT_EQ(job.precision.quantization, "nf4-dq");
  EXPECT_EQ(job.precision.weights, "bfloat16");
  EXPECT_EQ(job.precision.autocast, "bfloat16");
  EXPECT_EQ(job.compute.attention, "flash_attention_2");
  EXPECT_EQ(job.optimizer.name, "paged_adamw");
  EXPECT_EQ(job.compute.checkpointing, true);
  ASSERT_TRUE(job.lora);
  EXPECT_EQ(job.lora->rank, 64);
  EXPECT_THAT(job.lora->targets, testing::ElementsAre("q_proj", "v_proj"));
  EXPECT_EQ(understood_value(job, "extras.checkpointing_reentrant"), "False");
  EXPECT_FALSE(job.batch.sequence);
  EXPECT_EQ(job.keys.origins.at("micro_batch").key, "TrainingArguments.per_device_train_batch_size");
  EXPECT_EQ(job.keys.origins.at("micro_batch").line, 12);
  EXPECT_NE(note_of(job.keys.corrected, "TrainingArguments.evaluation_strategy"), nullptr);
  EXPECT_NE(note_of(job.keys.corrected, "AutoModelForCausalLM.from_pretrained.torch_dtype"), nullptr);
  EXPECT_NE(note_of(job.keys.corrected, "AutoModelForCausalLM.from_pretrained.attn_implementation"), nullptr);
}

TEST(PythonScript, PlainLoop) {
  const Job job = job_of("loop.py", R"(
import os
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True,max_split_size_mb:128"
train = DataLoader(train_set, batch_size=16, shuffle=True, num_workers=4, pin_memory=True)
valid = DataLoader(valid_set, batch_size=64)
model = torch.compile(FSDP(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, backward_prefetch=None,
                           cpu_offload=CPUOffload(offload_params=True)))
model.gradient_checkpointing_enable()
optimizer = bnb.optim.AdamW8bit(model.parameters(), lr=1e-4)
scaler = torch.cuda.amp.GradScaler()
with torch.autocast("cuda", dtype=torch.float16):
    loss = model(x)
)");
  EXPECT_EQ(job.system, System::pytorch_script);
  EXPECT_EQ(job.batch.micro, 16);
  EXPECT_EQ(job.evaluation.batch, 64);
  EXPECT_EQ(job.load.workers, 4);
  EXPECT_EQ(job.load.pin_memory, true);
  EXPECT_EQ(job.parallel.sharding, Sharding::zero2);
  EXPECT_EQ(job.parallel.offload_parameters, Offload::cpu);
  EXPECT_EQ(job.compute.checkpointing, true);
  EXPECT_EQ(job.optimizer.name, "adamw_8bit");
  EXPECT_EQ(job.precision.autocast, "float16");
  EXPECT_EQ(job.compute.compile, true);
  EXPECT_EQ(job.environment.allocator.at("expandable_segments"), "True");
  EXPECT_EQ(job.environment.allocator.at("max_split_size_mb"), "128");
  EXPECT_NE(note_of(job.keys.corrected, "os.environ[PYTORCH_CUDA_ALLOC_CONF]"), nullptr);
}

TEST(PythonScript, LitgptsOldScripts) {
  const Job job = job_of("lora.py", R"(
from lit_gpt.lora import GPT
import lightning as L
devices = 1
override_max_seq_length = None
learning_rate = 3e-4
batch_size = 128
micro_batch_size = 4
gradient_accumulation_iters = batch_size // micro_batch_size
lora_r = 8
def setup(checkpoint_dir: Path = Path("checkpoints/tiiuae/falcon-7b"), precision: Optional[str] = "bf16-true"):
    pass
)");
  EXPECT_EQ(job.system, System::litgpt);
  EXPECT_EQ(job.model, "tiiuae/falcon-7b");
  EXPECT_EQ(job.batch.micro, 4);
  EXPECT_EQ(job.batch.global, 128);
  EXPECT_EQ(job.precision.weights, "bfloat16");
  ASSERT_TRUE(job.lora);
  EXPECT_EQ(job.lora->rank, 8);
  EXPECT_EQ(note_of(job.keys.corrected, "micro_batch_size")->text.substr(0, 22), "train.micro_batch_size");
  EXPECT_NE(note_of(job.keys.corrected, "override_max_seq_length"), nullptr);
}

TEST(PythonScript, DefaultsOfItsOwnOptions) {
  const std::string text = R"(
def train(model_name, batch_size: int = 128, micro = 4, rank: int = 8):
    steps = batch_size // micro
    config = LoraConfig(r=rank, lora_alpha=args.lora_alpha, lora_dropout=args.twice)
    return TrainingArguments("o", per_device_train_batch_size=micro, gradient_accumulation_steps=batch_size // micro,
                             optim=script_args.optim, bf16=args.bf16, max_steps=args.nowhere, per_device_eval_batch_size=other)

@dataclass
class Arguments:
    optim: str = field(default="adafactor", metadata={"help": "x"})

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lora-alpha", type=int, default=32)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--twice", default=0.1)
    parser.add_argument("--twice", default=0.2)
)";
  const ConfigReading reading = read_config_text("own.py", text);
  expect_all_keys(reading);
  const Job& job = reading.job;
  EXPECT_EQ(job.batch.micro, 4);
  EXPECT_EQ(job.batch.accumulation, 32);
  EXPECT_EQ(job.optimizer.name, "adafactor");
  EXPECT_EQ(job.precision.autocast, "none");
  ASSERT_TRUE(job.lora);
  EXPECT_EQ(job.lora->rank, 8);
  EXPECT_EQ(job.lora->alpha, 32);
  EXPECT_EQ(job.keys.unreadable.size(), 2u);  // lora_dropout has two defaults, `other` has none
  ASSERT_EQ(reading.notes.size(), 1u);
  EXPECT_THAT(reading.notes[0], testing::HasSubstr("own.py: 6 values are taken from the script's own defaults (r, "));
}

TEST(PythonScript, OumisParamsNeedNoSharedData) {
  const Job job = job_of("o.py", R"(
config = TrainingConfig(
    model=ModelParams(model_name="m/x", torch_dtype_str="bfloat16", attn_implementation="sdpa", model_max_length=2048),
    training=TrainingParams(per_device_train_batch_size=2, enable_gradient_checkpointing=True,
                            optimizer="adamw_torch_fused", mixed_precision_dtype=MixedPrecisionDtype.BF16),
    fsdp=FSDPParams(enable_fsdp=True, sharding_strategy=ShardingStrategy.FULL_SHARD, cpu_offload=True,
                    backward_prefetch=BackwardPrefetch.NONE, forward_prefetch=False))
)");
  EXPECT_EQ(job.system, System::oumi);
  EXPECT_EQ(job.model, "m/x");
  EXPECT_EQ(job.batch.micro, 2);
  EXPECT_EQ(job.precision.autocast, "bfloat16");
  EXPECT_EQ(job.compute.attention, "sdpa");
  EXPECT_EQ(job.parallel.sharding, Sharding::zero3);
  EXPECT_EQ(job.parallel.offload_parameters, Offload::cpu);
  EXPECT_EQ(job.parallel.backward_prefetch, false);
  ASSERT_EQ(job.keys.corrected.size(), 1u);
  EXPECT_THAT(job.keys.corrected[0].text, testing::HasSubstr("NO_PREFETCH"));
  EXPECT_TRUE(job.keys.unknown.empty());
}

TEST(PythonScript, NothingKnownIsRefused) {
  expect_error(ErrorKind::format, "x.py:1: no call of a system", [] { read_config_text("x.py", "print('hello')\n"); });
  expect_error(ErrorKind::format, "x.py:3: a string without", [] { read_config_text("x.py", "a\nb\nc = 'd\n"); });
}

TEST(PythonScript, Notebook) {
  const Job job = job_of("n.ipynb", R"json({
 "cells": [
  {"cell_type": "markdown", "source": ["TrainingArguments(bf16=True)"]},
  {"cell_type": "code",
   "source": ["%pip install trl\n",
              "!nvidia-smi\n",
              "args = SFTConfig(max_seq_length=512,\n",
              "                 per_device_train_batch_size=2)"]}
 ]
})json");
  EXPECT_EQ(job.system, System::trl);
  EXPECT_EQ(job.batch.sequence, 512);
  EXPECT_EQ(job.batch.micro, 2);
  EXPECT_EQ(job.keys.origins.at("micro_batch").line, 8);
  EXPECT_FALSE(job.precision.autocast);
  EXPECT_THAT(note_of(job.keys.corrected, "SFTConfig.max_seq_length")->text, testing::HasSubstr("max_length"));
}

// The fenced Python blocks of a manual.
std::vector<std::string> blocks_of(const std::string& manual) {
  std::vector<std::string> blocks;
  size_t at = 0;
  while ((at = manual.find("```python\n", at)) != std::string::npos) {
    const size_t start = at + 10;
    const size_t end = manual.find("```", start);
    blocks.push_back(manual.substr(start, end - start));
    at = end + 3;
  }
  return blocks;
}

// A page of the repository and, if it is next to the repository, the manual with blocks of the same settings.
std::vector<std::filesystem::path> pages(const char* own, const char* manual) {
  std::vector<std::filesystem::path> found{test::data_file(own)};
  if (std::filesystem::exists(test::shared_file(manual))) found.push_back(test::shared_file(manual));
  return found;
}
std::string label(const testing::TestParamInfo<std::filesystem::path>& param) {
  return test::data_file_label(param.param);
}

class TrainerPage : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TrainerPage, Blocks) {
  const auto blocks = blocks_of(read_text_file(GetParam()));
  ASSERT_EQ(blocks.size(), 3u);
  for (const std::string& block : blocks) {
    const Job job = job_of("m1", block);
    EXPECT_EQ(job.system, System::hf_trainer);
    EXPECT_EQ(job.batch.micro, 4);
    EXPECT_EQ(job.evaluation.batch, 4);
    EXPECT_EQ(job.batch.accumulation, 8);
    EXPECT_TRUE(job.keys.unknown.empty());
  }
  EXPECT_FALSE(job_of("m1", blocks[0]).compute.checkpointing);
  EXPECT_EQ(job_of("m1", blocks[1]).compute.checkpointing, true);
  EXPECT_EQ(job_of("m1", blocks[2]).precision.autocast, "float16");
}

INSTANTIATE_TEST_SUITE_P(Pages, TrainerPage, testing::ValuesIn(pages("scripts/trainer.md", "manuals/M1.txt")), label);

class OumiPage : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(OumiPage, Blocks) {
  const auto blocks = blocks_of(read_text_file(GetParam()));
  ASSERT_EQ(blocks.size(), 18u);
  std::vector<Job> jobs;
  for (const std::string& block : blocks) {
    jobs.push_back(job_of("m3", block));
    EXPECT_EQ(jobs.back().system, System::oumi) << block;
    EXPECT_TRUE(jobs.back().keys.unknown.empty()) << block;
    EXPECT_FALSE(jobs.back().keys.understood.empty()) << block;
  }
  EXPECT_EQ(jobs[0].batch.micro, 8);
  EXPECT_EQ(jobs[0].batch.accumulation, 4);
  EXPECT_EQ(jobs[1].compute.checkpointing, true);
  EXPECT_EQ(jobs[2].optimizer.name, "adamw");
  EXPECT_EQ(jobs[3].precision.autocast, "bfloat16");
  EXPECT_EQ(jobs[4].precision.weights, "bfloat16");
  EXPECT_EQ(understood_value(jobs[5], "extras.empty_cache_steps"), "50");
  EXPECT_EQ(jobs[6].optimizer.name, "paged_adamw");
  EXPECT_EQ(jobs[7].compute.attention, "sdpa");
  EXPECT_EQ(jobs[8].compute.compile, true);
  EXPECT_EQ(jobs[9].compute.liger, true);
  EXPECT_EQ(jobs[10].batch.sequence, 2048);
  EXPECT_EQ(jobs[11].frozen, "layer.0,layer.1,layer.2");
  EXPECT_EQ(jobs[12].compute.attention, "ring_attention");
  ASSERT_TRUE(jobs[13].lora);
  EXPECT_EQ(jobs[13].lora->rank, 16);
  EXPECT_EQ(jobs[14].parallel.sharding, Sharding::zero3);
  EXPECT_EQ(jobs[15].parallel.offload_parameters, Offload::cpu);
  EXPECT_EQ(jobs[16].parallel.forward_prefetch, false);
  EXPECT_EQ(jobs[17].parallel.backward_prefetch, false);
  ASSERT_EQ(jobs[17].keys.corrected.size(), 1u);
  EXPECT_THAT(jobs[17].keys.corrected[0].text, testing::HasSubstr("NO_PREFETCH"));
}
INSTANTIATE_TEST_SUITE_P(Pages, OumiPage, testing::ValuesIn(pages("scripts/oumi.md", "manuals/M3.txt")), label);

TEST(Python, UnslothsAdaptersAndDefaults) {
  const Job job =
      read_config_text("train.py",
                       "from unsloth import FastLanguageModel\n"
                       "model, t = FastLanguageModel.from_pretrained(model_name=\"m\", max_seq_length=2048)\n"
                       "model = FastLanguageModel.get_peft_model(model, r=16, lora_alpha=16)\n")
          .job;
  ASSERT_TRUE(job.lora.has_value());
  EXPECT_EQ(job.lora->rank, 16);
  EXPECT_EQ(job.batch.sequence, 2048);
  EXPECT_EQ(job.precision.quantization, "nf4");
  EXPECT_EQ(job.library, "unsloth");
}

}  // namespace
}  // namespace headroom::doctor
