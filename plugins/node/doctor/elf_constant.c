#include "doctor/elf_constant.h"

#include "base/file.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct file {
	const char *start;
	size_t size;
};

/* `size` bytes from `offset` on; NULL: outside the file. */
static const void *bytes_at(const struct file *file, size_t offset, size_t size)
{
	if (offset > file->size || size > file->size - offset)
		return NULL;
	return file->start + offset;
}

static const ElfW(Ehdr) * header_of(const struct file *file)
{
	const ElfW(Ehdr) *header = bytes_at(file, 0, sizeof(*header));
	const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_ident[EI_CLASS] != class || header->e_shentsize != sizeof(ElfW(Shdr)) ||
	    header->e_phentsize != sizeof(ElfW(Phdr)))
		return NULL;
	return header;
}

/* The bytes of the file that are loaded at an address of the library. */
static const void *bytes_at_address(const struct file *file, const ElfW(Ehdr) * header,
				    size_t address, size_t size)
{
	const ElfW(Phdr) *one = bytes_at(file, header->e_phoff, header->e_phnum * sizeof(*one));

	for (int i = 0; one && i < header->e_phnum; i++, one++) {
		if (one->p_type == PT_LOAD && address >= one->p_vaddr &&
		    address - one->p_vaddr < one->p_filesz)
			return bytes_at(file, one->p_offset + (address - one->p_vaddr), size);
	}
	return NULL;
}

static bool is_named(const struct file *file, const ElfW(Shdr) * names, size_t offset,
		     const char *name)
{
	const char *found = NULL;

	if (offset < names->sh_size)
		found = bytes_at(file, names->sh_offset + offset, strlen(name) + 1);
	return found && memcmp(found, name, strlen(name) + 1) == 0;
}

static bool find_constant(const struct file *file, const char *name, unsigned *value)
{
	const ElfW(Ehdr) *header = header_of(file);
	const ElfW(Shdr) *sections =
	    header ? bytes_at(file, header->e_shoff, header->e_shnum * sizeof(*sections)) : NULL;

	for (int i = 0; sections && i < header->e_shnum; i++) {
		const ElfW(Shdr) *symbols = &sections[i];
		size_t count = symbols->sh_size / sizeof(ElfW(Sym));
		const ElfW(Sym) *symbol =
		    bytes_at(file, symbols->sh_offset, count * sizeof(*symbol));

		if (symbols->sh_type != SHT_DYNSYM || symbols->sh_link >= header->e_shnum)
			continue;
		for (size_t n = 0; symbol && n < count; n++, symbol++) {
			const void *found;

			if (symbol->st_shndx == SHN_UNDEF ||
			    !is_named(file, &sections[symbols->sh_link], symbol->st_name, name))
				continue;
			found = bytes_at_address(file, header, symbol->st_value, sizeof(*value));
			if (found)
				memcpy(value, found, sizeof(*value));
			return found != NULL;
		}
	}
	return false;
}

bool sy_read_elf_constant(const char *path, const char *name, unsigned *value)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct file file;
	struct stat status;
	void *mapped;
	bool is_found;

	if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size <= 0)
		return false;
	mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mapped == MAP_FAILED)
		return false;
	file = (struct file){mapped, (size_t)status.st_size};
	is_found = find_constant(&file, name, value);
	(void)munmap(mapped, file.size);
	return is_found;
}
