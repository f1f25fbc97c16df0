#include "formats/streamed_file.h"

#include <unistd.h>

#include "base/error.h"
#include "formats/atomic_dir.h"

namespace headroom {
namespace {

constexpr int64_t kWriteBack = int64_t{8} << 20;

}  // namespace

StreamedFile::StreamedFile(const std::filesystem::path& path)
    : path_(path), file_(File::create(temporary_beside(path))) {}

StreamedFile::~StreamedFile() {
  if (!finished_) abandon();
}

void StreamedFile::abandon() noexcept {
  if (file_.path().empty()) return;
  ::unlink(file_.path().c_str());
  file_ = File();
}

void StreamedFile::append(std::span<const std::byte> bytes) {
  try {
    file_.write_at(end_, bytes);
    end_ += static_cast<int64_t>(bytes.size());
    if (end_ - written_back_ < kWriteBack) return;
    file_.write_back(written_back_, end_ - written_back_);
    written_back_ = end_;
  } catch (const Error&) {
    abandon();
    throw;
  }
}

void StreamedFile::finish() {
  try {
    file_.sync();
    file_.drop_cache(0, 0);
    file_.close();
    rename_durably(file_.path(), path_);
    finished_ = true;
  } catch (const Error&) {
    abandon();
    throw;
  }
}

}  // namespace headroom
