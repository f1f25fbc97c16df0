// The tokenizer inside a GGUF as the files of a model's folder.
#pragma once

#include <array>
#include <filesystem>

namespace headroom {

inline constexpr std::array<const char*, 2> kTokenizerFiles = {"tokenizer.json", "tokenizer_config.json"};

// Writes these files into `folder`: Tokenizer::load() and load_chat_template() make the same of them as of `gguf`, and
// transformers reads them as a PreTrainedTokenizerFast. Where the tokens of several merges have the same score (model
// "llama"), a tokenizer.json cannot say that the leftmost is first: they are listed as transformers lists them. Holds
// as much as loading the tokenizer. Throws as Tokenizer::load(), Error(run) on I/O errors.
void write_tokenizer_files(const std::filesystem::path& gguf, const std::filesystem::path& folder);

}  // namespace headroom
