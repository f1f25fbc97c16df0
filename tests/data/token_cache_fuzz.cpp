// Any file opened as a token cache: sequences in range or an Error. The fuzzer may correct the checksums, so that it
// reaches the code after them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/token_cache.h"
#include "data/token_cache_format.h"

namespace {

using namespace headroom;

void repair_header(std::vector<uint8_t>& file) {
  TokenCacheHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  header.magic = kTokenCacheMagic;
  header.version = kTokenCacheVersion;
  header.file_bytes = static_cast<int64_t>(file.size());
  if (header.index_offset >= 0 && header.index_offset < header.file_bytes) {
    const auto index = std::as_bytes(std::span(file)).subspan(static_cast<size_t>(header.index_offset));
    header.sequences = static_cast<int64_t>(index.size() / sizeof(TokenCacheEntry));
    Checksum checksum;
    checksum.add(index);
    header.index_checksum = checksum.value();
  }
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(&header, 1)).first(offsetof(TokenCacheHeader, checksum)));
  header.checksum = checksum.value();
  std::memcpy(file.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::vector<uint8_t> file(data + 1, data + size);
  if (data[0] & 1) repair_header(file);
  const int descriptor = memfd_create("cache", 0);
  if (write(descriptor, file.data(), file.size()) != static_cast<ssize_t>(file.size())) abort();
  try {
    const TokenCache cache = TokenCache::open("/proc/self/fd/" + std::to_string(descriptor));
    if (cache.max_seq_length() <= 1 << 16) {
      std::vector<int32_t> ids(static_cast<size_t>(cache.max_seq_length())), labels(ids);
      for (int64_t i = 0; i < cache.sequences(); ++i) {
        const SequenceInfo info = cache.info(i);
        if (info.length < 1 || info.length > cache.max_seq_length() || info.targets < 0 || info.targets > info.length)
          abort();
        try {
          cache.read(i, ids, labels);
        } catch (const Error&) {
        }
      }
    }
  } catch (const Error&) {
  }
  close(descriptor);
  return 0;
}
