// What people say about memory that grows: it failed after epochs or many steps that went well.
#pragma once

#include <string_view>

namespace headroom::doctor {

// `log` is in lower case.

// Words for memory that is not given back.
inline constexpr std::string_view kNotGivenBack =
    "not released|not freed|isn't freed|isn't released|is not free|not being released|not being freed|never released|"
    "never freed|没有释放|未释放|不释放|没释放|释放不了|无法释放|解放されな|解放されず";

// The words that say that it failed after whole epochs, or after steps, that went well ("after 5-8 epochs", "when the
// epoch goes to 60"). Empty where none do, and where their sentence says that the memory no longer grows.
std::string_view told_after_epochs(std::string_view log);
// The words that say that memory itself grows ("the VRAM climbs from 6 to 11 GB", "grows every epoch"). Empty where no
// sentence says so of memory, or where it says that it does not.
std::string_view told_growing(std::string_view log);
// Whether the words of told_after_epochs() speak of the first few steps only: nothing has grown by then.
bool only_first_steps(std::string_view told);

}  // namespace headroom::doctor
