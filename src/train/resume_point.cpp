#include "train/resume_point.h"

#include "base/error.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::string remedy_for_no_checkpoint(const fs::path& given, const fs::path& output_dir) {
  for (const fs::path& directory : {given, output_dir})
    if (const auto newest = newest_checkpoint(directory))
      return fmt::format("give {}{}", newest->string(), directory == output_dir ? ", or true for it" : "");
  return "give a checkpoint-N directory, or true for the newest in --output-dir";
}

// Whether a run began there and did not save its final model.
bool has_only_begun(const fs::path& output_dir) {
  return fs::exists(output_dir / "metrics.jsonl") && !fs::exists(output_dir / "model.safetensors");
}

}  // namespace

ResumePoint find_resume_point(const SavingOptions& saving, const std::function<void(const std::string&)>& note) {
  ResumePoint from;
  const fs::path& out = saving.output_dir;
  if (saving.resume_from_checkpoint.empty()) return from;
  if (saving.resume_from_checkpoint == "true") {
    const auto newest = newest_checkpoint(out);
    from.restarts = !newest && has_only_begun(out);
    if (from.restarts) {
      note(fmt::format("{} holds no complete checkpoint yet: starting from step 0", out.string()));
      return from;
    }
    if (!newest)
      throw Error(ErrorKind::usage, fmt::format("{} holds no complete checkpoint", out.string()),
                  "start without --resume-from-checkpoint");
    from.checkpoint = *newest;
  } else {
    from.checkpoint = saving.resume_from_checkpoint;
    if (!fs::exists(from.checkpoint / "state.json"))
      throw Error(ErrorKind::usage,
                  fmt::format("{} is not a checkpoint: it has no state.json", from.checkpoint.string()),
                  remedy_for_no_checkpoint(from.checkpoint, out));
  }
  from.state = read_state(from.checkpoint);
  return from;
}

void check_output(const SavingOptions& saving, const ResumePoint& from) {
  const fs::path& out = saving.output_dir;
  std::error_code status;
  if (fs::exists(out, status) && !fs::is_directory(out, status))
    throw Error(ErrorKind::usage, fmt::format("--output-dir {} is not a directory", out.string()),
                "give a fresh --output-dir");
  if (from.resumes() || from.restarts) return;
  if (fs::exists(out / "metrics.jsonl", status) || fs::exists(out / "model.safetensors", status) ||
      newest_checkpoint(out))
    throw Error(ErrorKind::usage, fmt::format("{} holds another run", out.string()),
                "give a fresh --output-dir, or --resume-from-checkpoint true");
}

}  // namespace headroom
