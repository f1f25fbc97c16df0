#include "doctor/remedies/program_words.h"

namespace headroom::doctor {
namespace {

// Programs that have no training of their own, and what people call their scripts.
constexpr std::string_view kOnlyInfers =
    "error occurred when executing|ksampler|svdsampler|samplercustom|comfyui|llama-cli|llama-server|xinference|"
    "openai_api_server|openai_api.py|web_demo|webui_demo|cli_demo|gradio_demo|api_server.py|fastchat.serve|paddleocr|"
    "ppocr|predict_system.py|predict_rec.py|predict_det.py|predict_cls.py|ocr识别|ocr 识别|文字识别|streamlit run|"
    "ollama run|chat server|inference.py|infer.py|generate.py|predict.py|sample.py|demo.py|chat.py|txt2img|img2img|"
    "text2img|text-to-image|image generator|text generator|webui|web ui|invokeai|fooocus|automatic1111|a1111|swarmui|"
    "sdnext|oobabooga|koboldcpp|kobold|lm "
    "studio|gradio|streamlit|llama.cpp|tortoise|musicgen|audiocraft|run_generation|"
    "llava.serve|model_worker|text_generation|model.generate(";
// Phrases of logs that name a training which took place elsewhere.
constexpr std::string_view kTrainedElsewhere =
    "fine-tuned or trained|n_ctx_train|pretrained|pre-trained|预训练|fine-tuned";
constexpr std::string_view kSaysTraining =
    "train$|trains$|training$|train_|trainer|finetun|fine-tun|fine tun|dreambooth|微调|训练|学習|訓練|backward$|"
    "optimizer$|optimizer.|epoch|loss.";

}  // namespace

std::string_view plain_inference(const std::string& log, const std::string& setup, const Story& story) {
  if (story.task == ToldTask::training || !story.at(ToldStage::training).empty()) return {};
  const std::string_view word = any_word(log, kOnlyInfers);
  const std::string_view named = word.empty() ? any_word(setup, kOnlyInfers) : word;
  if (named.empty()) return {};
  const bool trains = !any_word(without_words(log, kTrainedElsewhere), kSaysTraining).empty() ||
                      !any_word(without_words(setup, kTrainedElsewhere), kSaysTraining).empty();
  return trains ? std::string_view() : named;
}

std::string_view named_framework(const std::string& log, const std::string& setup) {
  constexpr std::string_view kTorch = "torch|transformers|accelerate|deepspeed|diffusers|lightning";
  constexpr std::string_view kPaddle = "paddle|ppocr|ppyolo|doc/imgs";
  constexpr std::string_view kTensorflow =
      "tensorflow|keras|tf.|control_flow_ops|model.fit(|report_tensor_allocations|bfc_allocator|allocator "
      "gpu_0_bfc|tf1|tf2";
  for (const std::string* text : {&log, &setup})
    if (!any_word(*text, kTorch).empty() || text->find("pytorch") != std::string::npos) return {};
  for (const std::string* text : {&log, &setup}) {
    if (!any_word(*text, kPaddle).empty()) return "paddle";
    if (!any_word(*text, kTensorflow).empty()) return "tensorflow";
  }
  return {};
}

bool speaks_of_pytorch(std::string_view text) {
  constexpr std::string_view kNames =
      "torch|transformers|accelerate launch|deepspeed|diffusers|lightning|fsdp|ddp$|peft|lora|qlora|trl$|unsloth|"
      "axolotl|llama-factory|llamafactory|huggingface|hugging face|nn.|dataloader|state_dict|from_pretrained|"
      "device_map|trainingarguments|comfyui|stable diffusion|stable-diffusion|sdxl|ultralytics|yolov5|yolov8|"
      "detectron2|mmdet|mmseg|mmcv|fairseq|espnet|nnunet|nnu-net|timm$|llama|qwen|mistral|chatglm|vicuna|whisper|"
      "merge_and_unload|pin_memory|sentence-transformers|trainer.train|trainer.predict|compute_metrics|monai|allennlp";
  constexpr std::string_view kCode =
      ".cuda()|.to(device)|.to(\"cuda\")|.to('cuda')|.backward()|optimizer.step|.item()|.detach()|no_grad|.half()|"
      "empty_cache|loss.backward|cuda out of memory|cuda oom|outofmemoryerror|runtimeerror: cuda error";
  if (!any_word(text, kNames).empty() || text.find("pytorch") != std::string_view::npos) return true;
  return !any_word(text, kCode).empty();
}

std::string_view speech_word(std::string_view log) {
  return any_word(
      log,
      "max_duration|max-duration|sampling rate|sample rate|audio|speech|gigaspeech|librispeech|wenetspeech|ljspeech|"
      "aishell|utterance|recording|wav$|fbank|"
      "tacotron|waveglow|wavenet|mel_frames|melspec|mel spec|mel-spec|hifi-gan|hifigan|text-to-speech|text to speech|"
      "tts$|"
      "转写|转录|文字起こし|wenet|icefall|espnet|rnn-t|音频|语音|录音|采样率|音声|slice较长");
}

std::string_view windows_word(std::string_view log) {
  constexpr std::string_view kWindows =
      "windows|win10|win11|win 10|win 11|powershell|cmd.exe|python.exe|c:\\|d:\\|e:\\|f:\\|c:/|d:/|e:/|f:/|\\users\\|"
      "\\lib\\site-packages|\\appdata\\";
  constexpr std::string_view kOthers = "sliding windows|shifted windows|context windows|time windows|attention windows";
  if (!any_word(log, "wsl").empty()) return {};
  return any_word(without_words(log, kOthers), kWindows);
}

bool prints_torch_1(std::string_view log) {
  constexpr std::string_view kSecond =
      "pytorch2|pytorch 2|pytorch-2|pytorch==2|torch2|torch 2|torch==2|torch-2|torch: 2";
  if (!any_word(log, kSecond).empty()) return false;  // a comparison of both
  return !any_word(log,
                   "pytorch-1.|pytorch 1.|pytorch1.|pytorch==1.|pytorch: 1.|pytorch version: 1.|torch 1.|torch1.|"
                   "torch==1.|torch-1.|torch: 1.|torch version: 1.|torch.__version__ 1.")
              .empty();
}

bool written_for_pytorch(std::string_view set) {
  for (const std::string_view word :
       {"torch", "DataLoader(", ".item()", "optimizer.step", "fully_shard", ".half()", "from_pretrained", ".detach()",
        "no_grad", "device=\"cpu\"", "gradient_checkpointing_enable", "load_dataset", "pipe.", "Lightning"})
    if (set.find(word) != std::string_view::npos && set.find("paddle.") == std::string_view::npos) return true;
  return false;
}

}  // namespace headroom::doctor
