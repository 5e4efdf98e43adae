"""Which γ suits a network?"""
