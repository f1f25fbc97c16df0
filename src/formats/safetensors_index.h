// model.safetensors.index.json: which file of a checkpoint holds each tensor.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace headroom {

// Calls entry(tensor, file) for each entry of the index's weight_map, in order; a file is the plain name of a file next
// to the index. The index is read piece by piece and not kept. Throws Error(format) naming index and entry for anything
// else, for an index above 100 MB and for one without entries.
using IndexEntry = std::function<void(const std::string& tensor, const std::string& file)>;
void read_safetensors_index(const std::filesystem::path& index, const IndexEntry& entry);

// The files that the index names, without repetition, sorted. Throws Error(format) for more than 4096.
std::vector<std::string> files_of_index(const std::filesystem::path& index);

}  // namespace headroom
