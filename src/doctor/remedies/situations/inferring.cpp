// Programs that only infer and have their own options: ComfyUI's nodes, Paddle's recognisers, voice converters,
// Ollama's slots; and messages of programs that only a word identifies.
#include <fmt/format.h>

#include <cstdlib>

#include "doctor/remedies/figures.h"
#include "doctor/remedies/own_words.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_stage.h"
#include "doctor/remedies/tried.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

std::string quoted(std::string_view word) { return fmt::format("`{}` in the log", word); }

bool any_device(const CaseView& view) { return view.pool() == Pool::device && !view.has_job(); }

// ComfyUI prints the allocated and requested bytes and the device's limit; here their sum is far below the limit.
Evidence below_the_limit(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (view.log_says("allocation on device").empty() || !f.allocated || !f.requested || !f.capacity) return {};
  const int64_t sum = *f.allocated + *f.requested;
  if (sum >= *f.capacity * 9 / 10 || f.free.value_or(0) >= *f.requested) return {};
  return {0.93, fmt::format("{} allocated and {} requested of {}, {} free", figure(*f.allocated), figure(*f.requested),
                            figure(*f.capacity), figure(f.free.value_or(0)))};
}

bool recognises_by_paddle(const CaseView& view) {
  if (view.has_job() || view.story().task == ToldTask::training || view.phase("backward")) return false;
  constexpr std::string_view kOthers = "easyocr|tesseract|mmocr|surya|trocr|rapidocr|onnxruntime";
  return any_word(view.incident().log_text, kOthers).empty() &&
         any_word(view.incident().log_text, "训练|train$|training$|epoch").empty();
}
constexpr std::string_view kRecognises =
    "paddleocr|ppocr|paddlex|paddle inference|predict_system.py|paddle_infer|doc/imgs";
constexpr std::string_view kGrows =
    "一直涨|一直在增|一直增|不断增|不断上涨|持续增|越来越|没有回收|不释放|未释放|泄漏|泄露|memory leak|keeps growing|"
    "keeps increasing|grows with|increases with|増え続け";
// Text recognition whose memory grows, identified by a program's name or by words about recognition.
Evidence growing_recognition(const CaseView& view) {
  const std::string_view grows = any_word(view.incident().log_text, kGrows);
  if (grows.empty()) return {};
  const std::string_view named = view.log_says(kRecognises);
  if (!named.empty()) return {0.95, fmt::format("`{}` and `{}` in the log", named, grows)};
  const std::string_view reads = any_word(view.incident().log_text, "ocr识别|ocr 识别|文字识别|ocr$");
  const bool recognises =
      !reads.empty() && named_framework(view.incident().log_text, view.incident().setup_text).empty();
  return recognises ? Evidence{0.93, fmt::format("`{}` and `{}` in the log", reads, grows)} : Evidence{};
}

bool by_paddle(const CaseView& view) {
  return view.pool() == Pool::device && !view.has_job() &&
         named_framework(view.incident().log_text, view.incident().setup_text) == "paddle";
}

// A recording that goes through a network in one piece.
Evidence evaluated_by_paddle(const CaseView& view) {
  const std::string_view told = view.story().at(ToldStage::evaluation);
  if (told.empty() || view.log_says("paddle|ppocr|ppyolo").empty()) return {};
  return {0.88, fmt::format("`{}`, where the log says that it failed", told)};
}

bool converts_sound(const CaseView& view) {
  constexpr std::string_view kOthers =
      "whisper|transcrib|文字起こし|语音识别|asr$|funasr|demucs|spleeter|uvr5|musicgen|wav2vec|hubert for|conformer|"
      "speech recognition|speech-to-text|speech to text|diariz|nemo$|seamless";
  return on_device(view) && !view.has_job() && view.story().task != ToldTask::training &&
         any_word(view.incident().log_text, kOthers).empty();
}
Evidence long_piece_of_sound(const CaseView& view) {
  const std::string& log = view.incident().log_text;
  const std::string_view sound = any_word(log, "音频|audio|录音|歌声|vocals|wav$|音声"),
                         infers = any_word(log, "推理|inference|infer$|转换|推論|convert"),
                         length = any_word(log, "较长|太长|过长|slice|long audio|long file|long song|minutes|長い");
  if (sound.empty() || infers.empty() || length.empty()) return {};
  return {0.94, fmt::format("`{}` and `{}` in the log", infers, length)};
}

// GPT-SoVITS is not so-vits-svc: it has a language model and a synthesiser, each trained separately.
bool with_gpt_sovits(const CaseView& view) {
  return on_device(view) &&
         (!view.log_says("gpt-sovits|gpt_sovits|gptsovits|gpt sovits").empty() ||
          (!view.log_says("sovits").empty() && !view.log_says("gpt 模型|gpt模型|gpt_weights").empty()));
}
Evidence trained_sovits(const CaseView& view) {
  const std::string_view word = any_word(view.incident().log_text, "训练|train|学習");
  return word.empty() ? Evidence{} : Evidence{0.9, quoted(word)};
}

// Each slot of a server has the requested context: llama.cpp's n_ctx is their sum.
Evidence context_of_several_slots(const CaseView& view) {
  const std::string all = view.incident().setup_text + "\n" + view.incident().log_text;
  const auto behind = [&](std::string_view word) -> int64_t {
    const size_t at = all.find(word);
    if (at == std::string::npos) return 0;
    const size_t number = all.find_first_not_of(" =:\"", at + word.size());
    return number == std::string::npos ? 0 : std::strtoll(all.c_str() + number, nullptr, 10);
  };
  const int64_t asked = behind("num_ctx"), made = behind("n_ctx ");
  if (asked <= 0 || made < 2 * asked || made % asked != 0) return {};
  return {0.95, fmt::format("n_ctx = {} in the log is {} times num_ctx {}", made, made / asked, asked)};
}
bool with_ollama(const CaseView& view) { return view.says("ollama|parameter num_ctx"); }

// A bare status of a library, in a program that nothing identifies as using PyTorch.
bool library_alone(const CaseView& view) {
  return on_device(view) && (view.framework() == "cublas" || view.framework() == "cudnn") && !view.has_job() &&
         view.message()->frames.empty() && view.log_says("torch|aten|when calling|c10|transformers").empty();
}

// Memory that PyTorch reserves but does not use, described in words without figures.
Evidence reserved_in_words(const CaseView& view) {
  if (view.figures().allocated || view.figures().reserved) return {};
  // The program's words, with which its own message ends.
  constexpr std::string_view kOfTheMessage =
      "reserved in total by|reserved by pytorch but|if reserved memory is|if reserved but unallocated memory is";
  const std::string_view word = any_word(
      without_words(view.incident().log_text, kOfTheMessage),
      "reserve|予約しているメモリ|予約|キャッシュしている|reserved but unallocated|reserved memory|cached memory|"
      "caching allocator|预留|保留的显存|缓存的显存");
  return word.empty() ? Evidence{} : Evidence{0.87, quoted(word)};
}
bool reserves(const CaseView& view) {
  return on_device(view) && !view.serving() && unknown_program(view) && !asks_beyond_the_device(view);
}

// It ran before an upgrade and fails since.
bool of_any_program(const CaseView& view) { return !view.has_job() && view.pool() != Pool::shared_memory; }
// Somebody went back to an older version, and it helped.
std::string_view went_back(const std::string& log) {
  constexpr std::string_view kBack =
      "reverting|reverted|downgrading|downgraded|downgrade|rolling back|rolled back|roll back|going back to|went back "
      "to|回退|降级|退回到|换回|ダウングレード|バージョンを下げ|元のバージョン";
  constexpr std::string_view kHelped =
      "helps|works again|fixed|fixes|solved|solves|resolved|resolves|works|worked|helped|runs fine|goes away|went "
      "away|no longer|正常|"
      "没问题|解决|好了|可以运行|能跑|直り|直った|動いた|動きま|解消";
  const std::string own = without_replies(log);
  bool helped = false;
  std::string_view back;
  each_sentence(beginning(own), [&](std::string_view sentence) {
    back = affirmed_word(sentence, kBack);
    helped = !back.empty() && !affirmed_word(sentence, kHelped).empty() && !says_in_vain(sentence) &&
             !proposes(sentence) && sentence.find('?') == std::string_view::npos;
    return helped;
  });
  return helped ? any_word(log, back) : std::string_view();
}
Evidence worked_before_an_upgrade(const CaseView& view) {
  if (const std::string_view back = went_back(view.incident().log_text); !back.empty())
    return {0.95, fmt::format("`{}` in the log, and that it helped", back)};
  const std::string& log = view.incident().log_text;
  const std::string_view upgrade = any_word(
      log,
      "升级后|升级到|升级之后|升级了|更新后|更新之后|after upgrading|after i upgraded|after the upgrade|after updating|"
      "after i updated|after the update|since the update|since upgrading|since i updated|now switched to|switched to "
      "version|after switching to|after an update|"
      "アップデート後|アップデートしたら|更新したら|バージョンアップ");
  const std::string_view before = any_word(
      log,
      "升级之前|升级前|更新之前|更新前|旧版本|之前版本|以前的版本|before the upgrade|before upgrading|before the "
      "update|"
      "before updating|older version|old version|previous version|worked fine|worked well|used to work|worked before|"
      "was working|without any problem|correctly processed previously|以前は|前のバージョン");
  if (upgrade.empty() || before.empty()) return {};
  return {0.94, fmt::format("`{}` and `{}` in the log", upgrade, before)};
}

// Batches made by duration: a single overlong text or recording sets the size of all.
bool of_recordings(const CaseView& view) {
  return on_device(view) && !view.serving() && unknown_program(view) && !speech_word(view.incident().log_text).empty();
}
// By its words the program reads recordings, and nothing is trained.
bool only_reads_recordings(const CaseView& view) {
  constexpr std::string_view kElsewhere = "pretrained|pre-trained|trained model|fine-tuned|预训练|訓練済み|学習済み";
  constexpr std::string_view kTrains = "train|finetun|fine-tun|epoch|backward|optimizer|loss|训练|微调|学習|訓練";
  constexpr std::string_view kReads =
      "transcri|diariz|inference|infer$|infer.|subtitle|long audio|long file|long recording|web "
      "ui|webui|demo|推理|转写|"
      "转录|长音频|字幕|文字起こし|推論";
  if (!of_recordings(view) || view.in_a_step() || view.story().task == ToldTask::training) return false;
  const std::string& log = view.incident().log_text;
  return any_word(without_words(log, kElsewhere), kTrains).empty() && !any_word(log, kReads).empty();
}
bool of_batches_of_recordings(const CaseView& view) { return of_recordings(view) && !only_reads_recordings(view); }
Evidence one_request_of_recordings(const CaseView& view) {
  const MessageFigures& f = view.figures();
  if (!f.requested || !f.capacity || *f.requested <= *f.capacity * 9 / 10) return {};
  return {0.97, fmt::format("one request of {} on a device of {}, and {}", figure(*f.requested), figure(*f.capacity),
                            quoted(speech_word(view.incident().log_text)))};
}
// A long recording of a program that reads it, by the message or the post's words.
Evidence a_long_recording(const CaseView& view) {
  if (const Evidence request = one_request_of_recordings(view); request.weight > 0) return request;
  if (!view.log_says("whisper|funasr|转写|转录|vad$").empty()) return {};  // these cut it by themselves
  const std::string_view length = view.log_says(
      "long audio|long recording|long file|long wav|hours of audio|hour of audio|hour audio|hour-long|hours)|hours "
      "long|"
      "长音频|长录音|小时的录音|小时的音频|小时音频|長い音声|長時間");
  return length.empty() ? Evidence{} : Evidence{0.88, quoted(length)};
}

// A part at a time, and it fails all the same: "batches of 10 inside a loop ... but i still get".
Evidence fails_in_parts_too(const CaseView& view) {
  constexpr std::string_view kParts =
      "inside a loop|in a loop|inside the loop|in the loop|in a for loop|one by one|one at a time|one batch at a time|"
      "batch by batch|image by image|in batches of|for batches "
      "of|循环|逐张|逐个|一张一张|一个一个|ループ|一枚ずつ|1枚ずつ";
  std::string_view parts;
  const bool vain = each_with_answer(beginning(view), [&](std::string_view sentence, bool vain_behind) {
    parts = any_word(sentence, kParts);
    return !parts.empty() && (vain_behind || says_in_vain(sentence) || !told_out_of_memory(sentence).empty());
  });
  return vain ? Evidence{0.86, fmt::format("`{}` in the post, which fails all the same", parts)} : Evidence{};
}
bool predicting_by_itself(const CaseView& view) {
  return predicting_on_device(view) && !view.has_job() && unknown_program(view) &&
         view.story().task != ToldTask::training;
}

// Vectors are made of texts, and nothing is trained.
bool encodes_texts(const CaseView& view) {
  return on_device(view) && !view.serving() && !view.has_job() && view.story().task != ToldTask::training &&
         view.log_says("train$|training|finetun|fine-tun|epoch|微调|训练|vae|image").empty();
}

constexpr Situation kSituations[] = {
    {"texts_are_encoded",
     "a batch of texts is as long as its longest, and vectors that stay on the device add up",
     encodes_texts,
     {{log, 0.86,
       "sentence-transformers|sentence transformers|sentence_transformers|model.encode(|embed_documents|flagembedding|"
       "bge-m3|bge-large|bge-base|bge-small|e5-large|e5-base|gte-large|gte-base|gte-qwen|instructor-xl|rerank|"
       "向量化|embedding模型"}},
     {{"micro-batch", "model.encode(texts, batch_size=8) (32 unless stated; FlagEmbedding 256 and more)"},
      {"sequence-length", "model.max_seq_length = 512 (some models read 8192 tokens): longer texts are cut"},
      {"eval-accumulation",
       "a part of the texts at a time, vectors on the host: convert_to_tensor=False, .cpu() after each part"},
      {"half-inference", "model.half()", {}, System::unknown, "fp16|half()|float16"}}},
    {"kept_over_a_loop",
     "one part fits, and the loop over all of them does not: what earlier parts read or computed is still on the "
     "device, "
     "or all inputs are moved there before the loop",
     predicting_by_itself,
     {},
     {{"detach-history",
       "inputs to the device one at a time, inside the loop; results to the host: .cpu(); no list of either stays "
       "there"},
      {"no-grad", "with torch.no_grad(): around the loop, where it is not yet"},
      {"input-size"}},
     fails_in_parts_too},
    {"room_in_pieces_beside_a_pipeline",
     "what is allocated and requested is less than the device: the rest lies in pieces, in the allocator's cache, or "
     "with other programs (the desktop, a browser)",
     any_device,
     {},
     {{"low-vram", "--lowvram: parts of the model wait on the host (ComfyUI; --reserve-vram 2 leaves room to others)"},
      {"input-size",
       "a smaller image, fewer frames at once; in a video fewer frames decoded at a time (decoding_t, "
       "decode_chunk_size=1)"},
      {"expandable-segments"},
      {"end-other-processes", "nvidia-smi: what else holds the device (desktop, browser, another run)?"}},
     below_the_limit},
    {"recognition_that_grows",
     "by the post memory grows with the images: a predictor keeps a workspace for every new shape of image, and "
     "releases "
     "differ in what they give back",
     recognises_by_paddle,
     {},
     {{"own-allocator", "config.enable_memory_optim(); on a CPU config.set_mkldnn_cache_capacity(10) (enable_mkldnn)"},
      {"other-version", "a newer version: pip install -U paddleocr paddlepaddle"},
      {"input-size", "images of few sizes: padded, or with det_limit_side_len=960, so that few shapes are kept"},
      {"find-sample", "restart the process after some hundred images: what it kept goes with it"}},
     growing_recognition},
    {"evaluation_of_paddle",
     "an evaluation takes whole images, at sizes that the training's crops do not have, beside what the training holds",
     by_paddle,
     {},
     {{"input-size",
       "windows instead of whole images: test_config: is_slide: true, crop_size, stride (PaddleSeg); a smaller side in "
       "the evaluation's transforms (PaddleOCR: limit_side_len)"},
      {"eval-batch",
       "the evaluation apart from the training: without --do_eval (eval_batch_step out of reach), then the checkpoints "
       "by the program's own tool; a batch size of 1 there"},
      {"own-allocator", "export FLAGS_allocator_strategy=auto_growth, FLAGS_fraction_of_gpu_memory_to_use=0.5"}},
     evaluated_by_paddle},
    {"device_of_paddle",
     "Paddle takes a share of the device at its start, and batch and input size decide above it",
     by_paddle,
     {{either, 0.83, "paddle|ppocr|ppyolo"}},
     {{"micro-batch", "a smaller batch_size: half (recognition: rec_batch_num=1)"},
      {"own-allocator",
       "export FLAGS_allocator_strategy=auto_growth, FLAGS_fraction_of_gpu_memory_to_use=0.5; predictors: "
       "config.enable_memory_optim()"},
      {"input-size", "smaller images: half a side"},
      {"no-grad", "with paddle.no_grad(): around the prediction"}}},
    {"long_piece_of_sound",
     "a recording goes through the network in pieces that are cut at its pauses: without any, one piece is as long as "
     "it is",
     converts_sound,
     {},
     {{"input-size",
       "forced cuts: clip_seconds=20 (so-vits-svc: -cl 20), or shorter slices cut by hand, 10 to 20 s each"},
      {"on-cpu", "on the CPU, in host memory: device=\"cpu\" (-d cpu): slow"},
      {"end-other-processes", "nvidia-smi: another program may hold the device"}},
     long_piece_of_sound},
    {"training_of_gpt_sovits",
     "the synthesiser keeps features of whole clips: the longest of a batch decides",
     with_gpt_sovits,
     {},
     {{"micro-batch", "a batch size per GPU of 1 in the training's tab (SoVITS and GPT have one each)"},
      {"sequence-length", "shorter audio: slice again with a smaller maximum, clips of 3 to 8 s; longer ones left out"},
      {"end-other-processes", "nvidia-smi: other programs closed, the inference page of the web UI too"}},
     trained_sovits},
    {"context_of_several_slots",
     "every parallel request has a context of its own, and the cache is made for all of them",
     with_ollama,
     {},
     {{"max-sequences", "OLLAMA_NUM_PARALLEL=1 (before `ollama serve`): the context is made once"},
      {"quantized-model", "a smaller quantisation of the model: q3_K_M instead of q4_K_S, or fewer parameters"},
      {"kv-dtype",
       "OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0",
       {},
       System::unknown,
       "ollama_kv_cache_type=q"}},
     context_of_several_slots},
    {"library_without_a_framework",
     "the library found no room for its handle: TensorFlow and Keras take nearly the whole device at their start, in "
     "PyTorch the device is full",
     library_alone,
     {{log, 0.86, "cublas_status_alloc_failed|cudnn_status_alloc_failed|cublas_status_not_initialized"}},
     {{"grow-on-demand", "TensorFlow, Keras: TF_FORCE_GPU_ALLOW_GROWTH=true in the environment (allow_growth=True)"},
      {"end-other-processes", "nvidia-smi: another program, or an earlier run, may hold the device"},
      {"micro-batch", "a smaller batch: half of it"}}},
    {"reserved_in_words",
     "PyTorch keeps what was freed for itself: blocks of other sizes are in the way of a larger one",
     reserves,
     {},
     {{"empty-cache", "del what is no longer needed, then torch.cuda.empty_cache(), before the step that fails"},
      {"expandable-segments", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment (torch >= 2.1)"},
      {"micro-batch"}},
     reserved_in_words},
    {"worked_before_an_upgrade",
     "the same job ran before an upgrade: what the new release does is what takes the memory",
     of_any_program,
     {},
     {{"other-version",
       "go back to the older version that worked: pip install NAME==<version>, and compare what both set by default"}},
     worked_before_an_upgrade},
    {"request_of_recordings",
     "one text or recording that is far too long sets the size of its whole batch, whatever its duration",
     of_batches_of_recordings,
     {},
     {{"find-sample", "print the lengths of each batch: leave out the longest utterances and transcripts, or cut them"},
      {"sequence-length", "a smaller max_duration: half of it; utterances and texts beyond a length left out"},
      {"length-buckets", "batches by length, so that one outlier is not joined with many"}},
     one_request_of_recordings},
    {"recording_read_whole",
     "the recording goes through the network in one piece: the scores of its attention grow with the square of its "
     "length",
     only_reads_recordings,
     {},
     {{"input-size",
       "the recording in pieces: cut at its pauses into some minutes each (pipeline: chunk_length_s=30), one after "
       "another"},
      {"flash-attention",
       "attention that never holds all scores: from_pretrained(..., attn_implementation=\"sdpa\"), or "
       "\"flash_attention_2\""},
      {"half-inference",
       "16 bits where it runs in 32: from_pretrained(..., torch_dtype=torch.bfloat16)",
       {},
       System::unknown,
       "bfloat16|bf16|float16|fp16"}},
     a_long_recording},
};

}  // namespace

std::span<const Situation> inferring_situations() { return kSituations; }

}  // namespace headroom::doctor
