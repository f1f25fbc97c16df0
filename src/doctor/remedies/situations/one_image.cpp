// One image, volume or file that goes through a program at once: it is cut into tiles, resized, or read in windows.
#include <fmt/format.h>

#include "doctor/remedies/facts.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

// Words of a training, or of several inputs at once.
constexpr std::string_view kSeveral =
    "train$|training|trains|epoch|finetun|fine-tun|backward|optimizer|batch|dataloader|data loader|dataset|num_workers|"
    "训练|微调|批|学習|訓練";
bool one_at_a_time(const CaseView& view) {
  const std::string log = without_words(view.incident().log_text, "pre-trained|pretrained|预训练|訓練済み");
  return !view.has_job() && any_word(log, kSeveral).empty();
}
constexpr std::string_view kOthers =
    "internvl|llava|-vl|vlm$|minicpm-v|multimodal|多模态|point cloud|pointcloud|point-cloud|lidar|pointnet|点云|点群";
bool of_one_image(const CaseView& view) {
  return predicting_on_device(view) && view.reinforcement_library().empty() && one_at_a_time(view) &&
         !speaks_of_diffusion(view) && !speaks_of_texts(view) && view.log_says(kOthers).empty() && !by_comfyui(view) &&
         speech_word(view.incident().log_text).empty() && !told_beside_the_steps(view);
}
bool of_one_image_on_the_host(const CaseView& view) {
  constexpr std::string_view kElsewhere = "docker|container|kubernetes|chat|server|llm|gguf";
  return host_ran_out(view) && !view.figures().requested && one_at_a_time(view) && !speaks_of_diffusion(view) &&
         view.log_says(kElsewhere).empty();
}

// The program works on images one by one, by what the post says of them or of what it does with them.
Evidence an_image_is_read(const CaseView& view) {
  constexpr std::string_view kDoes =
      "input image|my photo|a photo|my picture|my image|test only|i test|restor|enhanc|denois|deblur|dehaz|coloriz|"
      "inpaint|matting|super resolution|super-resolution|upscal|sr scale|depth map|depth estimation|optical flow|"
      "interpolat|stitch|input is|whole slide|segment anything|tile|patch|超分|去噪|去模糊|修复|抠图|测试图|输入图";
  constexpr int64_t kSmall = 256;
  const std::string& log = view.incident().log_text;
  const std::string_view does = any_word(log, kDoes);
  const std::optional<int64_t> side = posted_side(beginning(view));
  constexpr std::string_view kSizes = "2k$|4k$|8k$|1080p|1440p|2160p";
  const bool sized = side.value_or(0) >= kSmall || speaks_of_images(view) || !any_word(log, kSizes).empty();
  if (does.empty() || !sized) return {};
  return {0.84, side ? fmt::format("`{}`, and a side of {} pixels, in the log", does, *side)
                     : fmt::format("`{}` in the log", does)};
}
Evidence a_large_image_on_the_host(const CaseView& view) {
  constexpr std::string_view kLarge =
      "large image|big image|huge image|image is large|larger image|large picture|large photo|tif$|tiff|geotiff|raster|"
      "orthophoto|orthomosaic|satellite|whole slide|svs$|ndpi|gigapixel|large volume|large scan|dicom|nifti|"
      "大图|大图像|遥感|卫星|大きな画像|巨大な画像|高解像度";
  constexpr std::string_view kImage = "image|photo|picture|scan|图片|图像|画像";
  constexpr int64_t kLargeSide = 3000;
  const std::string& log = view.incident().log_text;
  const std::string_view large = any_word(log, kLarge), image = any_word(log, kImage);
  if (const std::optional<int64_t> side = posted_side(beginning(view)); large.empty() && side && *side >= kLargeSide)
    return image.empty() ? Evidence{} : Evidence{0.86, fmt::format("`{}` of {} pixels in the log", image, *side)};
  return large.empty() ? Evidence{} : Evidence{0.86, fmt::format("`{}` in the log", large)};
}

// Tiles are in use, and it fails all the same.
bool tiles_by_now(const CaseView& view) {
  return predicting_on_device(view) && one_at_a_time(view) && !speaks_of_diffusion(view);
}
Evidence tiles_in_use(const CaseView& view) {
  constexpr std::string_view kTiles =
      "enabled tile|enable tile|tiled$|tiled,|with tile|tile mode|tile size|tile_size|--tile|using tile|use tile|"
      "tiled vae|tiled diffusion|tiled sampling|开启tile|开了tile|分块|タイル";
  const std::string_view tiles = view.log_says(kTiles);
  if (tiles.empty() || !speaks_of_images(view)) return {};
  return {0.88, fmt::format("`{}` in the log", tiles)};
}

// By the post it goes well with smaller inputs and fails with larger ones.
bool of_sized_inputs(const CaseView& view) {
  return on_device(view) && !view.serving() && !view.has_job() && !speaks_of_diffusion(view) && images_alone(view);
}
Evidence only_larger_inputs_fail(const CaseView& view) {
  constexpr std::string_view kWell =
      "does not occur|doesn't occur|not happen|n't happen|works|worked|is fine|fits|runs|no error|no problem|succeed|"
      "goes away|disappears|正常|没问题|没有问题|可以|能跑|動く|動きます|問題な";
  Evidence told;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    each_clause(sentence, [&](std::string_view clause) {
      const std::optional<int64_t> side = posted_side(clause);
      if (side && !affirmed_word(clause, kWell).empty() && told_out_of_memory(clause).empty())
        told = {0.87, fmt::format("{} pixels go well, by the post", *side)};
      return told.weight > 0;
    });
    return told.weight > 0;
  });
  return told;
}

constexpr std::string_view kTiles =
    "in tiles: overlapping pieces, one at a time, and the results joined (the program's own --tile, --tiled, "
    "tile_size, "
    "or cut by hand); or a smaller image";

constexpr Situation kSituations[] = {
    {"tiles_are_too_large",
     "what is computed at once is a tile: by default many programs take large ones, and encoder and decoder have tiles "
     "of their own",
     tiles_by_now,
     {},
     {{"input-size",
       "smaller tiles: --tile_size 512 --tile_stride 256 (or the program's names for them), the encoder's and "
       "decoder's "
       "too; or a smaller image"},
      {"half-inference", "16 bits: --precision fp16, --half, model.half()"},
      {"low-vram",
       "parts of the model on the host while others run, where the program has an option for it (--low_vram)"}},
     tiles_in_use},
    {"one_image_at_once",
     "the program works on one image: what every layer makes of it grows with its area, and there is no batch to halve",
     of_one_image,
     {},
     {{"input-size", kTiles},
      {"half-inference", "16 bits: model.half(), or torch.autocast around it (--fp16, --half)"},
      {"no-grad", "with torch.no_grad(): around it, where it is not yet"},
      {"on-cpu", "on the CPU, in host memory: device=\"cpu\": slow"}},
     an_image_is_read},
    {"only_larger_inputs_fail",
     "smaller inputs go well, by the post: what the layers keep grows with the area, and random scales of the "
     "augmentation may enlarge an image beyond the size that was set",
     of_sized_inputs,
     {},
     {{"input-size",
       "train on crops (RandomCrop of the size that fits), and bound random scales: ratio_range, scale, multi_scale "
       "(ratio_range=(0.5, 2.0) doubles a side)"},
      {"micro-batch", "a smaller batch: half of it (of 1, see the others)"},
      {"mixed-precision", "16 bits for the arithmetic: torch.autocast (fp16, --amp)"},
      {"checkpointing", "checkpoints in the backbone (with_cp=True, use_checkpoint=True)"}},
     only_larger_inputs_fail},
    {"one_image_on_the_host",
     "a whole image, and what is made of it, is in host memory at once: a compressed file takes many times its size",
     of_one_image_on_the_host,
     {},
     {{"input-size",
       "the image in overlapping tiles, one at a time, and the results put together; or a smaller image: resized "
       "before, "
       "the result scaled back"},
      {"lean-load", "read by windows, not whole: rasterio, tifffile's memmap, openslide"},
      {"host-memory"}},
     a_large_image_on_the_host},
};

}  // namespace

std::span<const Situation> one_image_situations() { return kSituations; }

}  // namespace headroom::doctor
