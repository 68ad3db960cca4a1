"""Lets the reference show `**options: Unpack[Options]` as the options that the TypedDict lists, its own and inherited ones.

Griffe's own extension for this knows no inherited ones.
"""

from typing import Any

from griffe import Class, ExprSubscript, Extension, Function, GriffeLoader, Module, Object, Parameter, ParameterKind


class ShowOptions(Extension):
    """Puts a parameter for each option in the place of `**options`."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **_: Any) -> None:
        """Do so everywhere in a package that was loaded."""
        self._visit(pkg, loader)

    def _visit(self, thing: Object, loader: GriffeLoader) -> None:
        for member in [*thing.members.values()]:
            if isinstance(member, Function):
                _show(member, loader)
            elif isinstance(member, Module | Class):
                self._visit(member, loader)


def _show(function: Function, loader: GriffeLoader) -> None:
    for parameter in [*function.parameters]:
        annotation: Any = parameter.annotation
        if parameter.kind is ParameterKind.var_keyword and isinstance(annotation, ExprSubscript) and str(annotation.left) == "Unpack":
            listing: Any = annotation.slice
            del function.parameters[parameter.name]
            for option in _options(loader.modules_collection[listing.canonical_path], loader).values():
                function.parameters.add(option)


def _options(listing: Any, loader: GriffeLoader) -> dict[str, Parameter]:
    options: dict[str, Parameter] = {}
    for base in listing.bases:
        if base.canonical_path != "typing.TypedDict":
            options |= _options(loader.modules_collection[base.canonical_path], loader)
    for name, option in listing.attributes.items():
        default = "None" if "None" in str(option.annotation) else "..."
        default = "UNSET" if "UnsetType" in str(option.annotation) else default
        options[name] = Parameter(name, annotation=option.annotation, kind=ParameterKind.keyword_only, default=default)
    return options
