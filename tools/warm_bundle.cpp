#include <jitsmith/tools/warm_bundle.hpp>

#include <stdexcept>

#include <fmt/format.h>

#include <jitsmith/cache/bundle_file.hpp>
#include <jitsmith/cache/whole_file.hpp>

namespace jitsmith {

WrittenBundle write_bundle(Engine& engine, const std::vector<Specialisation>& items,
                           const std::string& file) {
  BundleWriter bundle;
  for (const Specialisation& item : items) {
    const Key key = engine.key(*item.variant, item.params, item.target);
    const std::optional<Found> found = engine.cache().get(key.text, key.digest);
    if (!found || !bundle.add(found->entry))
      throw std::runtime_error(
          fmt::format("{} is not written: {} is not in the cache any more; run this again, with a larger "
                      "JITSMITH_CACHE_MAX_BYTES if the cache is full",
                      file, to_string(item)));
  }
  if (const int error = bundle.write(real_file_system(), file); error != 0)
    throw std::runtime_error(fmt::format("the bundle {} can't be written: {}; {}", file,
                                         message_of_errno(error),
                                         remedy_of_errno(error, "name another place by --into")));
  return {bundle.size(), bundle.bytes()};
}

}  // namespace jitsmith
