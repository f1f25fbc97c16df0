// What is read or kept whole in host memory although it could pass in pieces: corpora of a tokenizer, videos, results
// of a validation. And buffers of the host that a device's library asks for.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

constexpr std::string_view kTrains = "train$|training|trains|finetun|fine-tun|backward|optimizer|训练|微调|学習";

bool reads_a_video(const CaseView& view) {
  constexpr std::string_view kOthers = "docker|container|kubernetes|llm|chat|comfyui|diffusion|whisper|subtitle";
  const std::string log =
      without_words(view.incident().log_text, "pre-trained|pretrained|trained model|预训练|学習済み");
  return host_ran_out(view) && !view.has_job() && any_word(log, kTrains).empty() && any_word(log, kOthers).empty();
}
Evidence a_video_on_the_host(const CaseView& view) {
  constexpr std::string_view kFrames = "number of frames|all frames|all the frames|optical flow";
  const std::string_view named = video_word(view);
  const std::string_view video = named.empty() ? any_word(view.incident().log_text, kFrames) : named;
  return video.empty() ? Evidence{} : Evidence{0.86, fmt::format("`{}` in the log", video)};
}

// Once, at the end of an epoch, a request of a gigabyte on the host: results of all batches are joined.
Evidence results_joined_on_the_host(const CaseView& view) {
  constexpr int64_t kLarge = int64_t{1} << 30;
  const std::string_view told = told_after_epochs(view.incident().log_text);
  const std::optional<int64_t>& asked = view.figures().requested;
  if (told.empty() || only_first_steps(told) || !asked || *asked < kLarge) return {};
  return {0.86, fmt::format("one large request, and `{}` in the log", told)};
}
bool computes_with_pytorch(const CaseView& view) {
  return host_ran_out(view) && view.message() && view.message()->framework.starts_with("pytorch");
}

bool on_the_host(const CaseView& view) { return host_ran_out(view) && !view.has_job(); }
bool anywhere(const CaseView& view) { return !view.has_job(); }
bool loads_in_a_notebook(const CaseView& view) { return on_the_host(view) && !view.log_says("colab|kaggle").empty(); }

constexpr Situation kSituations[] = {
    {"corpus_of_a_tokenizer",
     "a tokenizer is trained on counts of words and pieces that it keeps in host memory: many times the text's size",
     on_the_host,
     {{log, 0.92,
       "sentencepiece|sentence piece|sentence_piece|spm_train|train_from_iterator|train tokenizer|train a tokenizer|"
       "train the tokenizer|training a tokenizer|tokenizer training|bpetrainer|wordpiecetrainer|tokenizer.train(|"
       "训练分词|训练tokenizer"}},
     {{"lean-load",
       "a sample of the text is enough, one to ten GB of it: spm_train --input_sentence_size=5000000 "
       "--shuffle_input_sentence=true, tokenizer.train_from_iterator over a part"},
      {"host-memory"},
      {"fewer-workers", "fewer threads: RAYON_NUM_THREADS=4, --num_threads=4"}}},
    {"video_read_whole",
     "all frames of a video, or all results of them, are in host memory at once",
     reads_a_video,
     {},
     {{"lean-load",
       "frames one after another (cv2.VideoCapture, decord by index), pairs loaded as they are needed, results written "
       "at once: nothing of the whole video in lists"},
      {"input-size", "a shorter clip (ffmpeg -ss 0 -t 10), fewer frames (every second one), a lower resolution"},
      {"host-memory"}},
     a_video_on_the_host},
    {"results_joined_on_the_host",
     "what comes at the end of an epoch joins results of all batches: outputs of the validation in one tensor",
     computes_with_pytorch,
     {},
     {{"detach-history",
       "metrics summed batch by batch instead of outputs that are listed and joined (torch.cat) at the end"},
      {"eval-batch", "a smaller validation set, or part of it: fewer results are kept"},
      {"host-memory"}},
     results_joined_on_the_host},
    {"context_of_ggml",
     "ggml found no host memory for a model's context: the file's weights must fit beside what the system uses",
     anywhere,
     {{log, 0.93, "ctx->mem_buffer != null|mem_buffer != null"}},
     {{"host-memory", "more host memory (RAM): the model's file and 1 to 2 GB beside it"},
      {"quantized-model", "a smaller file: fewer parameters, or 4 bits"},
      {"more-swap"}}},
    {"model_read_in_a_notebook",
     "a free notebook has about 12 GB of host memory, and a model passes through it whole on its way to the device",
     loads_in_a_notebook,
     {{log, 0.86,
       "model loading|loading the model|load the model|loading model|make_prior|from_pretrained|torch.load|"
       "changing model|change the model|加载模型"}},
     {{"lean-load",
       "low_cpu_mem_usage=True, torch_dtype=torch.float16, a checkpoint in shards (max_shard_size=\"2GB\")"},
      {"smaller-model", "the smaller of the program's models"},
      {"host-memory", "a runtime with more host memory (High-RAM)"}}},
};

}  // namespace

std::span<const Situation> read_whole_situations() { return kSituations; }

}  // namespace headroom::doctor
